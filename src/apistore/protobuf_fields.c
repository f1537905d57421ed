/* SPDX-License-Identifier: MIT */
/*
 * Made by tests/clients (tec-test-clients protobuf-fields) from the types of Kubernetes 1.34; do not
 * edit. tests/e2e/test_clients.py compares the two.
 */
#include "config.h"

#include <stddef.h>

#include "protobuf_fields.h"

/* clang-format off */
#define L static const struct protobuf_field
#define F(number, name, type) {number, name, PROTOBUF_##type, NULL, NULL}
#define T(number, name, type, go) {number, name, PROTOBUF_##type, NULL, go}
#define M(number, name, type, of) {number, name, PROTOBUF_##type, of, NULL}
#define END(go) {0, NULL, PROTOBUF_STRING, NULL, go}

L of_owner_reference[] = { F(5, "apiVersion", STRING_PTR), F(1, "kind", STRING_PTR), F(3, "name", STRING_PTR),
	T(4, "uid", STRING_PTR, "types.UID"), F(6, "controller", BOOL_PTR), F(7, "blockOwnerDeletion", BOOL_PTR), END("v1.OwnerReference")};
L of_managed_fields_entry[] = { F(1, "manager", STRING), T(2, "operation", STRING, "v1.ManagedFieldsOperationType"),
	F(3, "apiVersion", STRING), F(4, "time", TIME), F(6, "fieldsType", STRING), F(7, "fieldsV1", RAW),
	F(8, "subresource", STRING), END("v1.ManagedFieldsEntry")};
L of_object_meta[] = { F(1, "name", STRING), F(2, "generateName", STRING), F(3, "namespace", STRING),
	F(4, "selfLink", STRING), T(5, "uid", STRING, "types.UID"), F(6, "resourceVersion", STRING),
	T(7, "generation", INT, "int64"), F(8, "creationTimestamp", TIME), F(9, "deletionTimestamp", TIME),
	T(10, "deletionGracePeriodSeconds", INT_PTR, "int64"), F(11, "labels", TEXT_MAP),
	F(12, "annotations", TEXT_MAP), M(13, "ownerReferences", OBJECTS, of_owner_reference),
	F(14, "finalizers", STRINGS), M(17, "managedFields", OBJECTS, of_managed_fields_entry), END("v1.ObjectMeta")};
L of_config_map[] = { M(1, "metadata", OBJECT, of_object_meta), F(4, "immutable", BOOL_PTR), F(2, "data", TEXT_MAP),
	F(3, "binaryData", BYTES_MAP), END("v1.ConfigMap")};
L of_object_reference[] = { F(1, "kind", STRING), F(2, "namespace", STRING), F(3, "name", STRING),
	T(4, "uid", STRING, "types.UID"), F(5, "apiVersion", STRING), F(6, "resourceVersion", STRING),
	F(7, "fieldPath", STRING), END("v1.ObjectReference")};
L of_event_source[] = { F(1, "component", STRING), F(2, "host", STRING), END("v1.EventSource")};
L of_event_series[] = { F(1, "count", INT), F(2, "lastObservedTime", MICROTIME), END("v1.EventSeries")};
L of_event[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "involvedObject", OBJECT, of_object_reference),
	F(3, "reason", STRING), F(4, "message", STRING), M(5, "source", OBJECT, of_event_source),
	F(6, "firstTimestamp", TIME), F(7, "lastTimestamp", TIME), F(8, "count", INT), F(9, "type", STRING),
	F(10, "eventTime", MICROTIME), M(11, "series", OBJECT, of_event_series), F(12, "action", STRING),
	M(13, "related", OBJECT, of_object_reference), F(14, "reportingComponent", STRING_PTR),
	F(15, "reportingInstance", STRING_PTR), END("v1.Event")};
L of_namespace_spec[] = { T(1, "finalizers", STRINGS, "[]v1.FinalizerName"), END("v1.NamespaceSpec")};
L of_namespace_condition[] = { T(1, "type", STRING_PTR, "v1.NamespaceConditionType"),
	T(2, "status", STRING_PTR, "v1.ConditionStatus"), F(4, "lastTransitionTime", TIME), F(5, "reason", STRING),
	F(6, "message", STRING), END("v1.NamespaceCondition")};
L of_namespace_status[] = { T(1, "phase", STRING, "v1.NamespacePhase"),
	M(2, "conditions", OBJECTS, of_namespace_condition), END("v1.NamespaceStatus")};
L of_namespace[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_namespace_spec),
	M(3, "status", OBJECT, of_namespace_status), END("v1.Namespace")};
L of_host_path_volume_source[] = { F(1, "path", STRING_PTR), T(2, "type", STRING_PTR, "v1.HostPathType"), END("v1.HostPathVolumeSource")};
L of_empty_dir_volume_source[] = { T(1, "medium", STRING, "v1.StorageMedium"), F(2, "sizeLimit", QUANTITY), END("v1.EmptyDirVolumeSource")};
L of_gce_persistent_disk_volume_source[] = { F(1, "pdName", STRING_PTR), F(2, "fsType", STRING),
	F(3, "partition", INT), F(4, "readOnly", BOOL), END("v1.GCEPersistentDiskVolumeSource")};
L of_aws_elastic_block_store_volume_source[] = { F(1, "volumeID", STRING_PTR), F(2, "fsType", STRING),
	F(3, "partition", INT), F(4, "readOnly", BOOL), END("v1.AWSElasticBlockStoreVolumeSource")};
L of_git_repo_volume_source[] = { F(1, "repository", STRING_PTR), F(2, "revision", STRING), F(3, "directory", STRING), END("v1.GitRepoVolumeSource")};
L of_key_to_path[] = { F(1, "key", STRING_PTR), F(2, "path", STRING_PTR), F(3, "mode", INT_PTR), END("v1.KeyToPath")};
L of_secret_volume_source[] = { F(1, "secretName", STRING), M(2, "items", OBJECTS, of_key_to_path),
	F(3, "defaultMode", INT_PTR), F(4, "optional", BOOL_PTR), END("v1.SecretVolumeSource")};
L of_nfs_volume_source[] = { F(1, "server", STRING_PTR), F(2, "path", STRING_PTR), F(3, "readOnly", BOOL), END("v1.NFSVolumeSource")};
L of_local_object_reference[] = { F(1, "name", STRING), END("v1.LocalObjectReference")};
L of_iscsi_volume_source[] = { F(1, "targetPortal", STRING_PTR), F(2, "iqn", STRING_PTR), F(3, "lun", INT_PTR),
	F(4, "iscsiInterface", STRING), F(5, "fsType", STRING), F(6, "readOnly", BOOL), F(7, "portals", STRINGS),
	F(8, "chapAuthDiscovery", BOOL), F(11, "chapAuthSession", BOOL),
	M(10, "secretRef", OBJECT, of_local_object_reference), F(12, "initiatorName", STRING_PTR), END("v1.ISCSIVolumeSource")};
L of_glusterfs_volume_source[] = { F(1, "endpoints", STRING_PTR), F(2, "path", STRING_PTR), F(3, "readOnly", BOOL), END("v1.GlusterfsVolumeSource")};
L of_persistent_volume_claim_volume_source[] = { F(1, "claimName", STRING_PTR), F(2, "readOnly", BOOL), END("v1.PersistentVolumeClaimVolumeSource")};
L of_rbd_volume_source[] = { F(1, "monitors", STRINGS), F(2, "image", STRING_PTR), F(3, "fsType", STRING),
	F(4, "pool", STRING), F(5, "user", STRING), F(6, "keyring", STRING),
	M(7, "secretRef", OBJECT, of_local_object_reference), F(8, "readOnly", BOOL), END("v1.RBDVolumeSource")};
L of_flex_volume_source[] = { F(1, "driver", STRING_PTR), F(2, "fsType", STRING),
	M(3, "secretRef", OBJECT, of_local_object_reference), F(4, "readOnly", BOOL), F(5, "options", TEXT_MAP), END("v1.FlexVolumeSource")};
L of_cinder_volume_source[] = { F(1, "volumeID", STRING_PTR), F(2, "fsType", STRING), F(3, "readOnly", BOOL),
	M(4, "secretRef", OBJECT, of_local_object_reference), END("v1.CinderVolumeSource")};
L of_ceph_fs_volume_source[] = { F(1, "monitors", STRINGS), F(2, "path", STRING), F(3, "user", STRING),
	F(4, "secretFile", STRING), M(5, "secretRef", OBJECT, of_local_object_reference), F(6, "readOnly", BOOL), END("v1.CephFSVolumeSource")};
L of_flocker_volume_source[] = { F(1, "datasetName", STRING), F(2, "datasetUUID", STRING), END("v1.FlockerVolumeSource")};
L of_object_field_selector[] = { F(1, "apiVersion", STRING), F(2, "fieldPath", STRING_PTR), END("v1.ObjectFieldSelector")};
L of_resource_field_selector[] = { F(1, "containerName", STRING), F(2, "resource", STRING_PTR),
	F(3, "divisor", QUANTITY), END("v1.ResourceFieldSelector")};
L of_downward_api_volume_file[] = { F(1, "path", STRING_PTR), M(2, "fieldRef", OBJECT, of_object_field_selector),
	M(3, "resourceFieldRef", OBJECT, of_resource_field_selector), F(4, "mode", INT_PTR), END("v1.DownwardAPIVolumeFile")};
L of_downward_api_volume_source[] = { M(1, "items", OBJECTS, of_downward_api_volume_file),
	F(2, "defaultMode", INT_PTR), END("v1.DownwardAPIVolumeSource")};
L of_fc_volume_source[] = { F(1, "targetWWNs", STRINGS), F(2, "lun", INT_PTR), F(3, "fsType", STRING),
	F(4, "readOnly", BOOL), F(5, "wwids", STRINGS), END("v1.FCVolumeSource")};
L of_azure_file_volume_source[] = { F(1, "secretName", STRING_PTR), F(2, "shareName", STRING_PTR),
	F(3, "readOnly", BOOL), END("v1.AzureFileVolumeSource")};
L of_config_map_volume_source[] = { M(1, "", INLINE, of_local_object_reference),
	M(2, "items", OBJECTS, of_key_to_path), F(3, "defaultMode", INT_PTR), F(4, "optional", BOOL_PTR), END("v1.ConfigMapVolumeSource")};
L of_vsphere_virtual_disk_volume_source[] = { F(1, "volumePath", STRING_PTR), F(2, "fsType", STRING),
	F(3, "storagePolicyName", STRING), F(4, "storagePolicyID", STRING), END("v1.VsphereVirtualDiskVolumeSource")};
L of_quobyte_volume_source[] = { F(1, "registry", STRING_PTR), F(2, "volume", STRING_PTR), F(3, "readOnly", BOOL),
	F(4, "user", STRING), F(5, "group", STRING), F(6, "tenant", STRING), END("v1.QuobyteVolumeSource")};
L of_azure_disk_volume_source[] = { F(1, "diskName", STRING_PTR), F(2, "diskURI", STRING_PTR),
	T(3, "cachingMode", STRING_PTR, "v1.AzureDataDiskCachingMode"), F(4, "fsType", STRING_PTR),
	F(5, "readOnly", BOOL_PTR), T(6, "kind", STRING_PTR, "v1.AzureDataDiskKind"), END("v1.AzureDiskVolumeSource")};
L of_photon_persistent_disk_volume_source[] = { F(1, "pdID", STRING_PTR), F(2, "fsType", STRING), END("v1.PhotonPersistentDiskVolumeSource")};
L of_secret_projection[] = { M(1, "", INLINE, of_local_object_reference), M(2, "items", OBJECTS, of_key_to_path),
	F(4, "optional", BOOL_PTR), END("v1.SecretProjection")};
L of_downward_api_projection[] = { M(1, "items", OBJECTS, of_downward_api_volume_file), END("v1.DownwardAPIProjection")};
L of_config_map_projection[] = { M(1, "", INLINE, of_local_object_reference), M(2, "items", OBJECTS, of_key_to_path),
	F(4, "optional", BOOL_PTR), END("v1.ConfigMapProjection")};
L of_service_account_token_projection[] = { F(1, "audience", STRING), T(2, "expirationSeconds", INT_PTR, "int64"),
	F(3, "path", STRING_PTR), END("v1.ServiceAccountTokenProjection")};
L of_label_selector_requirement[] = { F(1, "key", STRING_PTR),
	T(2, "operator", STRING_PTR, "v1.LabelSelectorOperator"), F(3, "values", STRINGS), END("v1.LabelSelectorRequirement")};
L of_label_selector[] = { F(1, "matchLabels", TEXT_MAP),
	M(2, "matchExpressions", OBJECTS, of_label_selector_requirement), END("v1.LabelSelector")};
L of_cluster_trust_bundle_projection[] = { F(1, "name", STRING_PTR), F(2, "signerName", STRING_PTR),
	M(3, "labelSelector", OBJECT, of_label_selector), F(5, "optional", BOOL_PTR), F(4, "path", STRING_PTR), END("v1.ClusterTrustBundleProjection")};
L of_pod_certificate_projection[] = { F(1, "signerName", STRING), F(2, "keyType", STRING),
	F(3, "maxExpirationSeconds", INT_PTR), F(4, "credentialBundlePath", STRING), F(5, "keyPath", STRING),
	F(6, "certificateChainPath", STRING), END("v1.PodCertificateProjection")};
L of_volume_projection[] = { M(1, "secret", OBJECT, of_secret_projection),
	M(2, "downwardAPI", OBJECT, of_downward_api_projection), M(3, "configMap", OBJECT, of_config_map_projection),
	M(4, "serviceAccountToken", OBJECT, of_service_account_token_projection),
	M(5, "clusterTrustBundle", OBJECT, of_cluster_trust_bundle_projection),
	M(6, "podCertificate", OBJECT, of_pod_certificate_projection), END("v1.VolumeProjection")};
L of_projected_volume_source[] = { M(1, "sources", OBJECTS, of_volume_projection), F(2, "defaultMode", INT_PTR), END("v1.ProjectedVolumeSource")};
L of_portworx_volume_source[] = { F(1, "volumeID", STRING_PTR), F(2, "fsType", STRING), F(3, "readOnly", BOOL), END("v1.PortworxVolumeSource")};
L of_scale_io_volume_source[] = { F(1, "gateway", STRING_PTR), F(2, "system", STRING_PTR),
	M(3, "secretRef", OBJECT, of_local_object_reference), F(4, "sslEnabled", BOOL),
	F(5, "protectionDomain", STRING), F(6, "storagePool", STRING), F(7, "storageMode", STRING),
	F(8, "volumeName", STRING), F(9, "fsType", STRING), F(10, "readOnly", BOOL), END("v1.ScaleIOVolumeSource")};
L of_storage_os_volume_source[] = { F(1, "volumeName", STRING), F(2, "volumeNamespace", STRING),
	F(3, "fsType", STRING), F(4, "readOnly", BOOL), M(5, "secretRef", OBJECT, of_local_object_reference), END("v1.StorageOSVolumeSource")};
L of_csi_volume_source[] = { F(1, "driver", STRING_PTR), F(2, "readOnly", BOOL_PTR), F(3, "fsType", STRING_PTR),
	F(4, "volumeAttributes", TEXT_MAP), M(5, "nodePublishSecretRef", OBJECT, of_local_object_reference), END("v1.CSIVolumeSource")};
L of_volume_resource_requirements[] = { F(1, "limits", QUANTITY_MAP), F(2, "requests", QUANTITY_MAP), END("v1.VolumeResourceRequirements")};
L of_typed_local_object_reference[] = { F(1, "apiGroup", STRING_PTR), F(2, "kind", STRING_PTR),
	F(3, "name", STRING_PTR), END("v1.TypedLocalObjectReference")};
L of_typed_object_reference[] = { F(1, "apiGroup", STRING_PTR), F(2, "kind", STRING_PTR), F(3, "name", STRING_PTR),
	F(4, "namespace", STRING_PTR), END("v1.TypedObjectReference")};
L of_persistent_volume_claim_spec[] = { T(1, "accessModes", STRINGS, "[]v1.PersistentVolumeAccessMode"),
	M(4, "selector", OBJECT, of_label_selector), M(2, "resources", OBJECT, of_volume_resource_requirements),
	F(3, "volumeName", STRING), F(5, "storageClassName", STRING_PTR),
	T(6, "volumeMode", STRING_PTR, "v1.PersistentVolumeMode"),
	M(7, "dataSource", OBJECT, of_typed_local_object_reference),
	M(8, "dataSourceRef", OBJECT, of_typed_object_reference), F(9, "volumeAttributesClassName", STRING_PTR), END("v1.PersistentVolumeClaimSpec")};
L of_persistent_volume_claim_template[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "spec", OBJECT, of_persistent_volume_claim_spec), END("v1.PersistentVolumeClaimTemplate")};
L of_ephemeral_volume_source[] = { M(1, "volumeClaimTemplate", OBJECT, of_persistent_volume_claim_template), END("v1.EphemeralVolumeSource")};
L of_image_volume_source[] = { F(1, "reference", STRING), T(2, "pullPolicy", STRING, "v1.PullPolicy"), END("v1.ImageVolumeSource")};
L of_volume_source[] = { M(1, "hostPath", OBJECT, of_host_path_volume_source),
	M(2, "emptyDir", OBJECT, of_empty_dir_volume_source),
	M(3, "gcePersistentDisk", OBJECT, of_gce_persistent_disk_volume_source),
	M(4, "awsElasticBlockStore", OBJECT, of_aws_elastic_block_store_volume_source),
	M(5, "gitRepo", OBJECT, of_git_repo_volume_source), M(6, "secret", OBJECT, of_secret_volume_source),
	M(7, "nfs", OBJECT, of_nfs_volume_source), M(8, "iscsi", OBJECT, of_iscsi_volume_source),
	M(9, "glusterfs", OBJECT, of_glusterfs_volume_source),
	M(10, "persistentVolumeClaim", OBJECT, of_persistent_volume_claim_volume_source),
	M(11, "rbd", OBJECT, of_rbd_volume_source), M(12, "flexVolume", OBJECT, of_flex_volume_source),
	M(13, "cinder", OBJECT, of_cinder_volume_source), M(14, "cephfs", OBJECT, of_ceph_fs_volume_source),
	M(15, "flocker", OBJECT, of_flocker_volume_source),
	M(16, "downwardAPI", OBJECT, of_downward_api_volume_source), M(17, "fc", OBJECT, of_fc_volume_source),
	M(18, "azureFile", OBJECT, of_azure_file_volume_source),
	M(19, "configMap", OBJECT, of_config_map_volume_source),
	M(20, "vsphereVolume", OBJECT, of_vsphere_virtual_disk_volume_source),
	M(21, "quobyte", OBJECT, of_quobyte_volume_source), M(22, "azureDisk", OBJECT, of_azure_disk_volume_source),
	M(23, "photonPersistentDisk", OBJECT, of_photon_persistent_disk_volume_source),
	M(26, "projected", OBJECT, of_projected_volume_source),
	M(24, "portworxVolume", OBJECT, of_portworx_volume_source),
	M(25, "scaleIO", OBJECT, of_scale_io_volume_source), M(27, "storageos", OBJECT, of_storage_os_volume_source),
	M(28, "csi", OBJECT, of_csi_volume_source), M(29, "ephemeral", OBJECT, of_ephemeral_volume_source),
	M(30, "image", OBJECT, of_image_volume_source), END("v1.VolumeSource")};
L of_volume[] = { F(1, "name", STRING_PTR), M(2, "", INLINE, of_volume_source), END("v1.Volume")};
L of_container_port[] = { F(1, "name", STRING), F(2, "hostPort", INT), F(3, "containerPort", INT_PTR),
	T(4, "protocol", STRING, "v1.Protocol"), F(5, "hostIP", STRING), END("v1.ContainerPort")};
L of_config_map_env_source[] = { M(1, "", INLINE, of_local_object_reference), F(2, "optional", BOOL_PTR), END("v1.ConfigMapEnvSource")};
L of_secret_env_source[] = { M(1, "", INLINE, of_local_object_reference), F(2, "optional", BOOL_PTR), END("v1.SecretEnvSource")};
L of_env_from_source[] = { F(1, "prefix", STRING), M(2, "configMapRef", OBJECT, of_config_map_env_source),
	M(3, "secretRef", OBJECT, of_secret_env_source), END("v1.EnvFromSource")};
L of_config_map_key_selector[] = { M(1, "", INLINE, of_local_object_reference), F(2, "key", STRING_PTR),
	F(3, "optional", BOOL_PTR), END("v1.ConfigMapKeySelector")};
L of_secret_key_selector[] = { M(1, "", INLINE, of_local_object_reference), F(2, "key", STRING_PTR),
	F(3, "optional", BOOL_PTR), END("v1.SecretKeySelector")};
L of_file_key_selector[] = { F(1, "volumeName", STRING_PTR), F(2, "path", STRING_PTR), F(3, "key", STRING_PTR),
	F(4, "optional", BOOL_PTR), END("v1.FileKeySelector")};
L of_env_var_source[] = { M(1, "fieldRef", OBJECT, of_object_field_selector),
	M(2, "resourceFieldRef", OBJECT, of_resource_field_selector),
	M(3, "configMapKeyRef", OBJECT, of_config_map_key_selector),
	M(4, "secretKeyRef", OBJECT, of_secret_key_selector), M(5, "fileKeyRef", OBJECT, of_file_key_selector), END("v1.EnvVarSource")};
L of_env_var[] = { F(1, "name", STRING_PTR), F(2, "value", STRING), M(3, "valueFrom", OBJECT, of_env_var_source), END("v1.EnvVar")};
L of_resource_claim[] = { F(1, "name", STRING_PTR), F(2, "request", STRING), END("v1.ResourceClaim")};
L of_resource_requirements[] = { F(1, "limits", QUANTITY_MAP), F(2, "requests", QUANTITY_MAP),
	M(3, "claims", OBJECTS, of_resource_claim), END("v1.ResourceRequirements")};
L of_container_resize_policy[] = { T(1, "resourceName", STRING_PTR, "v1.ResourceName"),
	T(2, "restartPolicy", STRING_PTR, "v1.ResourceResizeRestartPolicy"), END("v1.ContainerResizePolicy")};
L of_container_restart_rule_on_exit_codes[] = {
	T(1, "operator", STRING, "v1.ContainerRestartRuleOnExitCodesOperator"), T(2, "values", INTS, "[]int32"), END("v1.ContainerRestartRuleOnExitCodes")};
L of_container_restart_rule[] = { T(1, "action", STRING, "v1.ContainerRestartRuleAction"),
	M(2, "exitCodes", OBJECT, of_container_restart_rule_on_exit_codes), END("v1.ContainerRestartRule")};
L of_volume_mount[] = { F(1, "name", STRING_PTR), F(2, "readOnly", BOOL),
	T(7, "recursiveReadOnly", STRING_PTR, "v1.RecursiveReadOnlyMode"), F(3, "mountPath", STRING_PTR),
	F(4, "subPath", STRING), T(5, "mountPropagation", STRING_PTR, "v1.MountPropagationMode"),
	F(6, "subPathExpr", STRING), END("v1.VolumeMount")};
L of_volume_device[] = { F(1, "name", STRING_PTR), F(2, "devicePath", STRING_PTR), END("v1.VolumeDevice")};
L of_exec_action[] = { F(1, "command", STRINGS), END("v1.ExecAction")};
L of_http_header[] = { F(1, "name", STRING_PTR), F(2, "value", STRING_PTR), END("v1.HTTPHeader")};
L of_http_get_action[] = { F(1, "path", STRING), F(2, "port", INT_OR_STRING), F(3, "host", STRING),
	T(4, "scheme", STRING, "v1.URIScheme"), M(5, "httpHeaders", OBJECTS, of_http_header), END("v1.HTTPGetAction")};
L of_tcp_socket_action[] = { F(1, "port", INT_OR_STRING), F(2, "host", STRING), END("v1.TCPSocketAction")};
L of_grpc_action[] = { F(1, "port", INT_PTR), F(2, "service", STRING_PTR), END("v1.GRPCAction")};
L of_probe_handler[] = { M(1, "exec", OBJECT, of_exec_action), M(2, "httpGet", OBJECT, of_http_get_action),
	M(3, "tcpSocket", OBJECT, of_tcp_socket_action), M(4, "grpc", OBJECT, of_grpc_action), END("v1.ProbeHandler")};
L of_probe[] = { M(1, "", INLINE, of_probe_handler), F(2, "initialDelaySeconds", INT), F(3, "timeoutSeconds", INT),
	F(4, "periodSeconds", INT), F(5, "successThreshold", INT), F(6, "failureThreshold", INT),
	T(7, "terminationGracePeriodSeconds", INT_PTR, "int64"), END("v1.Probe")};
L of_sleep_action[] = { T(1, "seconds", INT_PTR, "int64"), END("v1.SleepAction")};
L of_lifecycle_handler[] = { M(1, "exec", OBJECT, of_exec_action), M(2, "httpGet", OBJECT, of_http_get_action),
	M(3, "tcpSocket", OBJECT, of_tcp_socket_action), M(4, "sleep", OBJECT, of_sleep_action), END("v1.LifecycleHandler")};
L of_lifecycle[] = { M(1, "postStart", OBJECT, of_lifecycle_handler), M(2, "preStop", OBJECT, of_lifecycle_handler),
	T(3, "stopSignal", STRING_PTR, "v1.Signal"), END("v1.Lifecycle")};
L of_capabilities[] = { T(1, "add", STRINGS, "[]v1.Capability"), T(2, "drop", STRINGS, "[]v1.Capability"), END("v1.Capabilities")};
L of_se_linux_options[] = { F(1, "user", STRING), F(2, "role", STRING), F(3, "type", STRING), F(4, "level", STRING), END("v1.SELinuxOptions")};
L of_windows_security_context_options[] = { F(1, "gmsaCredentialSpecName", STRING_PTR),
	F(2, "gmsaCredentialSpec", STRING_PTR), F(3, "runAsUserName", STRING_PTR), F(4, "hostProcess", BOOL_PTR), END("v1.WindowsSecurityContextOptions")};
L of_seccomp_profile[] = { T(1, "type", STRING_PTR, "v1.SeccompProfileType"), F(2, "localhostProfile", STRING_PTR), END("v1.SeccompProfile")};
L of_app_armor_profile[] = { T(1, "type", STRING_PTR, "v1.AppArmorProfileType"), F(2, "localhostProfile", STRING_PTR), END("v1.AppArmorProfile")};
L of_security_context[] = { M(1, "capabilities", OBJECT, of_capabilities), F(2, "privileged", BOOL_PTR),
	M(3, "seLinuxOptions", OBJECT, of_se_linux_options),
	M(10, "windowsOptions", OBJECT, of_windows_security_context_options), T(4, "runAsUser", INT_PTR, "int64"),
	T(8, "runAsGroup", INT_PTR, "int64"), F(5, "runAsNonRoot", BOOL_PTR),
	F(6, "readOnlyRootFilesystem", BOOL_PTR), F(7, "allowPrivilegeEscalation", BOOL_PTR),
	T(9, "procMount", STRING_PTR, "v1.ProcMountType"), M(11, "seccompProfile", OBJECT, of_seccomp_profile),
	M(12, "appArmorProfile", OBJECT, of_app_armor_profile), END("v1.SecurityContext")};
L of_container[] = { F(1, "name", STRING_PTR), F(2, "image", STRING), F(3, "command", STRINGS), F(4, "args", STRINGS),
	F(5, "workingDir", STRING), M(6, "ports", OBJECTS, of_container_port),
	M(19, "envFrom", OBJECTS, of_env_from_source), M(7, "env", OBJECTS, of_env_var),
	M(8, "resources", OBJECT, of_resource_requirements),
	M(23, "resizePolicy", OBJECTS, of_container_resize_policy),
	T(24, "restartPolicy", STRING_PTR, "v1.ContainerRestartPolicy"),
	M(25, "restartPolicyRules", OBJECTS, of_container_restart_rule),
	M(9, "volumeMounts", OBJECTS, of_volume_mount), M(21, "volumeDevices", OBJECTS, of_volume_device),
	M(10, "livenessProbe", OBJECT, of_probe), M(11, "readinessProbe", OBJECT, of_probe),
	M(22, "startupProbe", OBJECT, of_probe), M(12, "lifecycle", OBJECT, of_lifecycle),
	F(13, "terminationMessagePath", STRING),
	T(20, "terminationMessagePolicy", STRING, "v1.TerminationMessagePolicy"),
	T(14, "imagePullPolicy", STRING, "v1.PullPolicy"), M(15, "securityContext", OBJECT, of_security_context),
	F(16, "stdin", BOOL), F(17, "stdinOnce", BOOL), F(18, "tty", BOOL), END("v1.Container")};
L of_ephemeral_container_common[] = { F(1, "name", STRING_PTR), F(2, "image", STRING), F(3, "command", STRINGS),
	F(4, "args", STRINGS), F(5, "workingDir", STRING), M(6, "ports", OBJECTS, of_container_port),
	M(19, "envFrom", OBJECTS, of_env_from_source), M(7, "env", OBJECTS, of_env_var),
	M(8, "resources", OBJECT, of_resource_requirements),
	M(23, "resizePolicy", OBJECTS, of_container_resize_policy),
	T(24, "restartPolicy", STRING_PTR, "v1.ContainerRestartPolicy"),
	M(25, "restartPolicyRules", OBJECTS, of_container_restart_rule),
	M(9, "volumeMounts", OBJECTS, of_volume_mount), M(21, "volumeDevices", OBJECTS, of_volume_device),
	M(10, "livenessProbe", OBJECT, of_probe), M(11, "readinessProbe", OBJECT, of_probe),
	M(22, "startupProbe", OBJECT, of_probe), M(12, "lifecycle", OBJECT, of_lifecycle),
	F(13, "terminationMessagePath", STRING),
	T(20, "terminationMessagePolicy", STRING, "v1.TerminationMessagePolicy"),
	T(14, "imagePullPolicy", STRING, "v1.PullPolicy"), M(15, "securityContext", OBJECT, of_security_context),
	F(16, "stdin", BOOL), F(17, "stdinOnce", BOOL), F(18, "tty", BOOL), END("v1.EphemeralContainerCommon")};
L of_ephemeral_container[] = { M(1, "", INLINE, of_ephemeral_container_common), F(2, "targetContainerName", STRING), END("v1.EphemeralContainer")};
L of_sysctl[] = { F(1, "name", STRING_PTR), F(2, "value", STRING_PTR), END("v1.Sysctl")};
L of_pod_security_context[] = { M(1, "seLinuxOptions", OBJECT, of_se_linux_options),
	M(8, "windowsOptions", OBJECT, of_windows_security_context_options), T(2, "runAsUser", INT_PTR, "int64"),
	T(6, "runAsGroup", INT_PTR, "int64"), F(3, "runAsNonRoot", BOOL_PTR), F(4, "supplementalGroups", INTS),
	T(12, "supplementalGroupsPolicy", STRING_PTR, "v1.SupplementalGroupsPolicy"),
	T(5, "fsGroup", INT_PTR, "int64"), M(7, "sysctls", OBJECTS, of_sysctl),
	T(9, "fsGroupChangePolicy", STRING_PTR, "v1.PodFSGroupChangePolicy"),
	M(10, "seccompProfile", OBJECT, of_seccomp_profile), M(11, "appArmorProfile", OBJECT, of_app_armor_profile),
	T(13, "seLinuxChangePolicy", STRING_PTR, "v1.PodSELinuxChangePolicy"), END("v1.PodSecurityContext")};
L of_node_selector_requirement[] = { F(1, "key", STRING_PTR), T(2, "operator", STRING_PTR, "v1.NodeSelectorOperator"),
	F(3, "values", STRINGS), END("v1.NodeSelectorRequirement")};
L of_node_selector_term[] = { M(1, "matchExpressions", OBJECTS, of_node_selector_requirement),
	M(2, "matchFields", OBJECTS, of_node_selector_requirement), END("v1.NodeSelectorTerm")};
L of_node_selector[] = { M(1, "nodeSelectorTerms", OBJECTS, of_node_selector_term), END("v1.NodeSelector")};
L of_preferred_scheduling_term[] = { F(1, "weight", INT_PTR), M(2, "preference", OBJECT, of_node_selector_term), END("v1.PreferredSchedulingTerm")};
L of_node_affinity[] = { M(1, "requiredDuringSchedulingIgnoredDuringExecution", OBJECT, of_node_selector),
	M(2, "preferredDuringSchedulingIgnoredDuringExecution", OBJECTS, of_preferred_scheduling_term), END("v1.NodeAffinity")};
L of_pod_affinity_term[] = { M(1, "labelSelector", OBJECT, of_label_selector), F(2, "namespaces", STRINGS),
	F(3, "topologyKey", STRING_PTR), M(4, "namespaceSelector", OBJECT, of_label_selector),
	F(5, "matchLabelKeys", STRINGS), F(6, "mismatchLabelKeys", STRINGS), END("v1.PodAffinityTerm")};
L of_weighted_pod_affinity_term[] = { F(1, "weight", INT_PTR), M(2, "podAffinityTerm", OBJECT, of_pod_affinity_term), END("v1.WeightedPodAffinityTerm")};
L of_pod_affinity[] = { M(1, "requiredDuringSchedulingIgnoredDuringExecution", OBJECTS, of_pod_affinity_term),
	M(2, "preferredDuringSchedulingIgnoredDuringExecution", OBJECTS, of_weighted_pod_affinity_term), END("v1.PodAffinity")};
L of_pod_anti_affinity[] = { M(1, "requiredDuringSchedulingIgnoredDuringExecution", OBJECTS, of_pod_affinity_term),
	M(2, "preferredDuringSchedulingIgnoredDuringExecution", OBJECTS, of_weighted_pod_affinity_term), END("v1.PodAntiAffinity")};
L of_affinity[] = { M(1, "nodeAffinity", OBJECT, of_node_affinity), M(2, "podAffinity", OBJECT, of_pod_affinity),
	M(3, "podAntiAffinity", OBJECT, of_pod_anti_affinity), END("v1.Affinity")};
L of_toleration[] = { F(1, "key", STRING), T(2, "operator", STRING, "v1.TolerationOperator"), F(3, "value", STRING),
	T(4, "effect", STRING, "v1.TaintEffect"), T(5, "tolerationSeconds", INT_PTR, "int64"), END("v1.Toleration")};
L of_host_alias[] = { F(1, "ip", STRING_PTR), F(2, "hostnames", STRINGS), END("v1.HostAlias")};
L of_pod_dns_config_option[] = { F(1, "name", STRING), F(2, "value", STRING_PTR), END("v1.PodDNSConfigOption")};
L of_pod_dns_config[] = { F(1, "nameservers", STRINGS), F(2, "searches", STRINGS),
	M(3, "options", OBJECTS, of_pod_dns_config_option), END("v1.PodDNSConfig")};
L of_pod_readiness_gate[] = { T(1, "conditionType", STRING_PTR, "v1.PodConditionType"), END("v1.PodReadinessGate")};
L of_topology_spread_constraint[] = { F(1, "maxSkew", INT_PTR), F(2, "topologyKey", STRING_PTR),
	T(3, "whenUnsatisfiable", STRING_PTR, "v1.UnsatisfiableConstraintAction"),
	M(4, "labelSelector", OBJECT, of_label_selector), F(5, "minDomains", INT_PTR),
	T(6, "nodeAffinityPolicy", STRING_PTR, "v1.NodeInclusionPolicy"),
	T(7, "nodeTaintsPolicy", STRING_PTR, "v1.NodeInclusionPolicy"), F(8, "matchLabelKeys", STRINGS), END("v1.TopologySpreadConstraint")};
L of_pod_os[] = { T(1, "name", STRING_PTR, "v1.OSName"), END("v1.PodOS")};
L of_pod_scheduling_gate[] = { F(1, "name", STRING_PTR), END("v1.PodSchedulingGate")};
L of_pod_resource_claim[] = { F(1, "name", STRING_PTR), F(3, "resourceClaimName", STRING_PTR),
	F(4, "resourceClaimTemplateName", STRING_PTR), END("v1.PodResourceClaim")};
L of_pod_spec[] = { M(1, "volumes", OBJECTS, of_volume), M(20, "initContainers", OBJECTS, of_container),
	M(2, "containers", OBJECTS, of_container), M(34, "ephemeralContainers", OBJECTS, of_ephemeral_container),
	T(3, "restartPolicy", STRING, "v1.RestartPolicy"), T(4, "terminationGracePeriodSeconds", INT_PTR, "int64"),
	T(5, "activeDeadlineSeconds", INT_PTR, "int64"), T(6, "dnsPolicy", STRING, "v1.DNSPolicy"),
	F(7, "nodeSelector", TEXT_MAP), F(8, "serviceAccountName", STRING), F(9, "serviceAccount", STRING),
	F(21, "automountServiceAccountToken", BOOL_PTR), F(10, "nodeName", STRING), F(11, "hostNetwork", BOOL),
	F(12, "hostPID", BOOL), F(13, "hostIPC", BOOL), F(27, "shareProcessNamespace", BOOL_PTR),
	M(14, "securityContext", OBJECT, of_pod_security_context),
	M(15, "imagePullSecrets", OBJECTS, of_local_object_reference), F(16, "hostname", STRING),
	F(17, "subdomain", STRING), M(18, "affinity", OBJECT, of_affinity), F(19, "schedulerName", STRING),
	M(22, "tolerations", OBJECTS, of_toleration), M(23, "hostAliases", OBJECTS, of_host_alias),
	F(24, "priorityClassName", STRING), F(25, "priority", INT_PTR), M(26, "dnsConfig", OBJECT, of_pod_dns_config),
	M(28, "readinessGates", OBJECTS, of_pod_readiness_gate), F(29, "runtimeClassName", STRING_PTR),
	F(30, "enableServiceLinks", BOOL_PTR), T(31, "preemptionPolicy", STRING_PTR, "v1.PreemptionPolicy"),
	F(32, "overhead", QUANTITY_MAP), M(33, "topologySpreadConstraints", OBJECTS, of_topology_spread_constraint),
	F(35, "setHostnameAsFQDN", BOOL_PTR), M(36, "os", OBJECT, of_pod_os), F(37, "hostUsers", BOOL_PTR),
	M(38, "schedulingGates", OBJECTS, of_pod_scheduling_gate),
	M(39, "resourceClaims", OBJECTS, of_pod_resource_claim), M(40, "resources", OBJECT, of_resource_requirements),
	F(41, "hostnameOverride", STRING_PTR), END("v1.PodSpec")};
L of_pod_condition[] = { T(1, "type", STRING_PTR, "v1.PodConditionType"), T(7, "observedGeneration", INT, "int64"),
	T(2, "status", STRING_PTR, "v1.ConditionStatus"), F(3, "lastProbeTime", TIME),
	F(4, "lastTransitionTime", TIME), F(5, "reason", STRING), F(6, "message", STRING), END("v1.PodCondition")};
L of_host_ip[] = { F(1, "ip", STRING_PTR), END("v1.HostIP")};
L of_pod_ip[] = { F(1, "ip", STRING_PTR), END("v1.PodIP")};
L of_container_state_waiting[] = { F(1, "reason", STRING), F(2, "message", STRING), END("v1.ContainerStateWaiting")};
L of_container_state_running[] = { F(1, "startedAt", TIME), END("v1.ContainerStateRunning")};
L of_container_state_terminated[] = { F(1, "exitCode", INT_PTR), F(2, "signal", INT), F(3, "reason", STRING),
	F(4, "message", STRING), F(5, "startedAt", TIME), F(6, "finishedAt", TIME), F(7, "containerID", STRING), END("v1.ContainerStateTerminated")};
L of_container_state[] = { M(1, "waiting", OBJECT, of_container_state_waiting),
	M(2, "running", OBJECT, of_container_state_running),
	M(3, "terminated", OBJECT, of_container_state_terminated), END("v1.ContainerState")};
L of_volume_mount_status[] = { F(1, "name", STRING_PTR), F(2, "mountPath", STRING_PTR), F(3, "readOnly", BOOL),
	T(4, "recursiveReadOnly", STRING_PTR, "v1.RecursiveReadOnlyMode"), END("v1.VolumeMountStatus")};
L of_linux_container_user[] = { T(1, "uid", INT_PTR, "int64"), T(2, "gid", INT_PTR, "int64"),
	F(3, "supplementalGroups", INTS), END("v1.LinuxContainerUser")};
L of_container_user[] = { M(1, "linux", OBJECT, of_linux_container_user), END("v1.ContainerUser")};
L of_resource_health[] = { T(1, "resourceID", STRING_PTR, "v1.ResourceID"),
	T(2, "health", STRING, "v1.ResourceHealthStatus"), END("v1.ResourceHealth")};
L of_resource_status[] = { T(1, "name", STRING_PTR, "v1.ResourceName"),
	M(2, "resources", OBJECTS, of_resource_health), END("v1.ResourceStatus")};
L of_container_status[] = { F(1, "name", STRING_PTR), M(2, "state", OBJECT, of_container_state),
	M(3, "lastState", OBJECT, of_container_state), F(4, "ready", BOOL_PTR), F(5, "restartCount", INT_PTR),
	F(6, "image", STRING_PTR), F(7, "imageID", STRING_PTR), F(8, "containerID", STRING),
	F(9, "started", BOOL_PTR), F(10, "allocatedResources", QUANTITY_MAP),
	M(11, "resources", OBJECT, of_resource_requirements), M(12, "volumeMounts", OBJECTS, of_volume_mount_status),
	M(13, "user", OBJECT, of_container_user), M(14, "allocatedResourcesStatus", OBJECTS, of_resource_status),
	T(15, "stopSignal", STRING_PTR, "v1.Signal"), END("v1.ContainerStatus")};
L of_pod_resource_claim_status[] = { F(1, "name", STRING_PTR), F(2, "resourceClaimName", STRING_PTR), END("v1.PodResourceClaimStatus")};
L of_container_extended_resource_request[] = { F(1, "containerName", STRING_PTR), F(2, "resourceName", STRING_PTR),
	F(3, "requestName", STRING_PTR), END("v1.ContainerExtendedResourceRequest")};
L of_pod_extended_resource_claim_status[] = {
	M(1, "requestMappings", OBJECTS, of_container_extended_resource_request),
	F(2, "resourceClaimName", STRING_PTR), END("v1.PodExtendedResourceClaimStatus")};
L of_pod_status[] = { T(17, "observedGeneration", INT, "int64"), T(1, "phase", STRING, "v1.PodPhase"),
	M(2, "conditions", OBJECTS, of_pod_condition), F(3, "message", STRING), F(4, "reason", STRING),
	F(11, "nominatedNodeName", STRING), F(5, "hostIP", STRING), M(16, "hostIPs", OBJECTS, of_host_ip),
	F(6, "podIP", STRING), M(12, "podIPs", OBJECTS, of_pod_ip), F(7, "startTime", TIME),
	M(10, "initContainerStatuses", OBJECTS, of_container_status),
	M(8, "containerStatuses", OBJECTS, of_container_status), T(9, "qosClass", STRING, "v1.PodQOSClass"),
	M(13, "ephemeralContainerStatuses", OBJECTS, of_container_status),
	T(14, "resize", STRING, "v1.PodResizeStatus"),
	M(15, "resourceClaimStatuses", OBJECTS, of_pod_resource_claim_status),
	M(18, "extendedResourceClaimStatus", OBJECT, of_pod_extended_resource_claim_status), END("v1.PodStatus")};
L of_pod[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_pod_spec),
	M(3, "status", OBJECT, of_pod_status), END("v1.Pod")};
L of_secret[] = { M(1, "metadata", OBJECT, of_object_meta), F(5, "immutable", BOOL_PTR), F(2, "data", BYTES_MAP),
	F(4, "stringData", TEXT_MAP), T(3, "type", STRING, "v1.SecretType"), END("v1.Secret")};
L of_service_account[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "secrets", OBJECTS, of_object_reference),
	M(3, "imagePullSecrets", OBJECTS, of_local_object_reference), F(4, "automountServiceAccountToken", BOOL_PTR), END("v1.ServiceAccount")};
L of_preconditions[] = { T(1, "uid", STRING_PTR, "types.UID"), F(2, "resourceVersion", STRING_PTR), END("v1.Preconditions")};
L of_delete_options[] = { T(1, "gracePeriodSeconds", INT_PTR, "int64"),
	M(2, "preconditions", OBJECT, of_preconditions), F(3, "orphanDependents", BOOL_PTR),
	T(4, "propagationPolicy", STRING_PTR, "v1.DeletionPropagation"), F(5, "dryRun", STRINGS),
	F(6, "ignoreStoreReadErrorWithClusterBreakingPotential", BOOL_PTR), END("v1.DeleteOptions")};
L of_user_info[] = { F(1, "username", STRING), F(2, "uid", STRING), F(3, "groups", STRINGS),
	F(4, "extra", STRINGS_MAP), END("v1.UserInfo")};
L of_self_subject_review_status[] = { M(1, "userInfo", OBJECT, of_user_info), END("v1.SelfSubjectReviewStatus")};
L of_self_subject_review[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "status", OBJECT, of_self_subject_review_status), END("v1.SelfSubjectReview")};
L of_bound_object_reference[] = { F(1, "kind", STRING), F(2, "apiVersion", STRING), F(3, "name", STRING),
	T(4, "uid", STRING, "types.UID"), END("v1.BoundObjectReference")};
L of_token_request_spec[] = { F(1, "audiences", STRINGS), T(4, "expirationSeconds", INT_PTR, "int64"),
	M(3, "boundObjectRef", OBJECT, of_bound_object_reference), END("v1.TokenRequestSpec")};
L of_token_request_status[] = { F(1, "token", STRING_PTR), F(2, "expirationTimestamp", TIME), END("v1.TokenRequestStatus")};
L of_token_request[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_token_request_spec),
	M(3, "status", OBJECT, of_token_request_status), END("v1.TokenRequest")};
L of_field_selector_requirement[] = { F(1, "key", STRING_PTR),
	T(2, "operator", STRING_PTR, "v1.FieldSelectorOperator"), F(3, "values", STRINGS), END("v1.FieldSelectorRequirement")};
L of_field_selector_attributes[] = { F(1, "rawSelector", STRING),
	M(2, "requirements", OBJECTS, of_field_selector_requirement), END("v1.FieldSelectorAttributes")};
L of_label_selector_attributes[] = { F(1, "rawSelector", STRING),
	M(2, "requirements", OBJECTS, of_label_selector_requirement), END("v1.LabelSelectorAttributes")};
L of_resource_attributes[] = { F(1, "namespace", STRING), F(2, "verb", STRING), F(3, "group", STRING),
	F(4, "version", STRING), F(5, "resource", STRING), F(6, "subresource", STRING), F(7, "name", STRING),
	M(8, "fieldSelector", OBJECT, of_field_selector_attributes),
	M(9, "labelSelector", OBJECT, of_label_selector_attributes), END("v1.ResourceAttributes")};
L of_non_resource_attributes[] = { F(1, "path", STRING), F(2, "verb", STRING), END("v1.NonResourceAttributes")};
L of_self_subject_access_review_spec[] = { M(1, "resourceAttributes", OBJECT, of_resource_attributes),
	M(2, "nonResourceAttributes", OBJECT, of_non_resource_attributes), END("v1.SelfSubjectAccessReviewSpec")};
L of_subject_access_review_status[] = { F(1, "allowed", BOOL_PTR), F(4, "denied", BOOL), F(2, "reason", STRING),
	F(3, "evaluationError", STRING), END("v1.SubjectAccessReviewStatus")};
L of_self_subject_access_review[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "spec", OBJECT, of_self_subject_access_review_spec),
	M(3, "status", OBJECT, of_subject_access_review_status), END("v1.SelfSubjectAccessReview")};
L of_self_subject_rules_review_spec[] = { F(1, "namespace", STRING), END("v1.SelfSubjectRulesReviewSpec")};
L of_resource_rule[] = { F(1, "verbs", STRINGS), F(2, "apiGroups", STRINGS), F(3, "resources", STRINGS),
	F(4, "resourceNames", STRINGS), END("v1.ResourceRule")};
L of_non_resource_rule[] = { F(1, "verbs", STRINGS), F(2, "nonResourceURLs", STRINGS), END("v1.NonResourceRule")};
L of_subject_rules_review_status[] = { M(1, "resourceRules", OBJECTS, of_resource_rule),
	M(2, "nonResourceRules", OBJECTS, of_non_resource_rule), F(3, "incomplete", BOOL_PTR),
	F(4, "evaluationError", STRING), END("v1.SubjectRulesReviewStatus")};
L of_self_subject_rules_review[] = { M(1, "metadata", OBJECT, of_object_meta),
	M(2, "spec", OBJECT, of_self_subject_rules_review_spec),
	M(3, "status", OBJECT, of_subject_rules_review_status), END("v1.SelfSubjectRulesReview")};
L of_pod_failure_policy_on_exit_codes_requirement[] = { F(1, "containerName", STRING_PTR),
	T(2, "operator", STRING_PTR, "v1.PodFailurePolicyOnExitCodesOperator"), T(3, "values", INTS, "[]int32"), END("v1.PodFailurePolicyOnExitCodesRequirement")};
L of_pod_failure_policy_on_pod_conditions_pattern[] = { T(1, "type", STRING_PTR, "v1.PodConditionType"),
	T(2, "status", STRING_PTR, "v1.ConditionStatus"), END("v1.PodFailurePolicyOnPodConditionsPattern")};
L of_pod_failure_policy_rule[] = { T(1, "action", STRING_PTR, "v1.PodFailurePolicyAction"),
	M(2, "onExitCodes", OBJECT, of_pod_failure_policy_on_exit_codes_requirement),
	M(3, "onPodConditions", OBJECTS, of_pod_failure_policy_on_pod_conditions_pattern), END("v1.PodFailurePolicyRule")};
L of_pod_failure_policy[] = { M(1, "rules", OBJECTS, of_pod_failure_policy_rule), END("v1.PodFailurePolicy")};
L of_success_policy_rule[] = { F(1, "succeededIndexes", STRING_PTR), F(2, "succeededCount", INT_PTR), END("v1.SuccessPolicyRule")};
L of_success_policy[] = { M(1, "rules", OBJECTS, of_success_policy_rule), END("v1.SuccessPolicy")};
L of_pod_template_spec[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_pod_spec), END("v1.PodTemplateSpec")};
L of_job_spec[] = { F(1, "parallelism", INT_PTR), F(2, "completions", INT_PTR),
	T(3, "activeDeadlineSeconds", INT_PTR, "int64"), M(11, "podFailurePolicy", OBJECT, of_pod_failure_policy),
	M(16, "successPolicy", OBJECT, of_success_policy), F(7, "backoffLimit", INT_PTR),
	F(12, "backoffLimitPerIndex", INT_PTR), F(13, "maxFailedIndexes", INT_PTR),
	M(4, "selector", OBJECT, of_label_selector), F(5, "manualSelector", BOOL_PTR),
	M(6, "template", OBJECT, of_pod_template_spec), F(8, "ttlSecondsAfterFinished", INT_PTR),
	T(9, "completionMode", STRING_PTR, "v1.CompletionMode"), F(10, "suspend", BOOL_PTR),
	T(14, "podReplacementPolicy", STRING_PTR, "v1.PodReplacementPolicy"), F(15, "managedBy", STRING_PTR), END("v1.JobSpec")};
L of_job_condition[] = { T(1, "type", STRING_PTR, "v1.JobConditionType"),
	T(2, "status", STRING_PTR, "v1.ConditionStatus"), F(3, "lastProbeTime", TIME),
	F(4, "lastTransitionTime", TIME), F(5, "reason", STRING), F(6, "message", STRING), END("v1.JobCondition")};
L of_uncounted_terminated_pods[] = { T(1, "succeeded", STRINGS, "[]types.UID"),
	T(2, "failed", STRINGS, "[]types.UID"), END("v1.UncountedTerminatedPods")};
L of_job_status[] = { M(1, "conditions", OBJECTS, of_job_condition), F(2, "startTime", TIME),
	F(3, "completionTime", TIME), F(4, "active", INT), F(5, "succeeded", INT), F(6, "failed", INT),
	F(11, "terminating", INT_PTR), F(7, "completedIndexes", STRING), F(10, "failedIndexes", STRING_PTR),
	M(8, "uncountedTerminatedPods", OBJECT, of_uncounted_terminated_pods), F(9, "ready", INT_PTR), END("v1.JobStatus")};
L of_job[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "spec", OBJECT, of_job_spec),
	M(3, "status", OBJECT, of_job_status), END("v1.Job")};
L of_event_series_events[] = { F(1, "count", INT_PTR), F(2, "lastObservedTime", MICROTIME), END("v1.EventSeries")};
L of_event_events[] = { M(1, "metadata", OBJECT, of_object_meta), F(2, "eventTime", MICROTIME),
	M(3, "series", OBJECT, of_event_series_events), F(4, "reportingController", STRING),
	F(5, "reportingInstance", STRING), F(6, "action", STRING), F(7, "reason", STRING),
	M(8, "regarding", OBJECT, of_object_reference), M(9, "related", OBJECT, of_object_reference),
	F(10, "note", STRING), F(11, "type", STRING), M(12, "deprecatedSource", OBJECT, of_event_source),
	F(13, "deprecatedFirstTimestamp", TIME), F(14, "deprecatedLastTimestamp", TIME),
	F(15, "deprecatedCount", INT), END("v1.Event")};
L of_eviction[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "deleteOptions", OBJECT, of_delete_options), END("v1.Eviction")};
L of_subject[] = { F(1, "kind", STRING_PTR), F(2, "apiGroup", STRING), F(3, "name", STRING_PTR),
	F(4, "namespace", STRING), END("v1.Subject")};
L of_role_ref[] = { F(1, "apiGroup", STRING_PTR), F(2, "kind", STRING_PTR), F(3, "name", STRING_PTR), END("v1.RoleRef")};
L of_role_binding[] = { M(1, "metadata", OBJECT, of_object_meta), M(2, "subjects", OBJECTS, of_subject),
	M(3, "roleRef", OBJECT, of_role_ref), END("v1.RoleBinding")};

const struct protobuf_message protobuf_messages[] = {
	{"v1", "ConfigMap", of_config_map},
	{"v1", "Event", of_event},
	{"v1", "Namespace", of_namespace},
	{"v1", "Pod", of_pod},
	{"v1", "Secret", of_secret},
	{"v1", "ServiceAccount", of_service_account},
	{"v1", "DeleteOptions", of_delete_options},
	{"meta.k8s.io/v1", "DeleteOptions", of_delete_options},
	{"authentication.k8s.io/v1", "SelfSubjectReview", of_self_subject_review},
	{"authentication.k8s.io/v1", "TokenRequest", of_token_request},
	{"authorization.k8s.io/v1", "SelfSubjectAccessReview", of_self_subject_access_review},
	{"authorization.k8s.io/v1", "SelfSubjectRulesReview", of_self_subject_rules_review},
	{"batch/v1", "Job", of_job},
	{"events.k8s.io/v1", "Event", of_event_events},
	{"policy/v1", "Eviction", of_eviction},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", of_role_binding},
	{NULL, NULL, NULL},
};
/* clang-format on */
