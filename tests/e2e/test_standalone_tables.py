# SPDX-License-Identifier: MIT
"""One table, two API servers: tests of the other files once more, with tec-operator --standalone as the API server.
The operator under test is a process of its own, with the token of its ServiceAccount and the Role of k8s/.

Not repeated here: what needs admission policies (test_approval_policy), the audit of reads
(test_a_registration_costs_few_requests), HTTP/2 (the half of test_faults over h2), and what a controller of
Kubernetes does to Jobs, ReplicaSets and Pods, of which there is none."""

import pytest

from conftest import control_plane
from standaloneplane import StandalonePlane

# pylint: disable=unused-import
from test_faults import (  # noqa: F401
    test_api_server_restart, test_foreign_secret_in_a_keys_place_is_untouched, test_leader_killed_is_replaced,
    test_token_file_is_read_again)
from test_registration import test_what_waits_is_cleared_by_one_line  # noqa: F401
from test_spine import (  # noqa: F401
    test_arbitrary_public_key_through_the_api, test_delete_waits_for_trustee_and_says_so,
    test_duplicate_registrations, test_install_makes_every_object_once, test_key_first_then_machine,
    test_listeners_in_processes_of_their_own, test_lost_key_is_restored_or_reported_never_remade,
    test_main_job_with_a_real_tpm_key, test_no_address_makes_no_machine, test_repairs_what_is_deleted_or_edited,
    test_second_cluster_waits_and_takes_over, test_second_key_is_held_until_an_admin_approves,
    test_two_machines_with_one_id)
from test_trustee import (  # noqa: F401
    test_delete_a_machine, test_register, test_replaced_key, test_revoke_a_key, test_two_machines_never_share,
    test_what_an_admin_made)


@pytest.fixture(scope="module")
def cp():
    """In place of the control plane that the other files share."""
    with control_plane(StandalonePlane) as plane:
        yield plane


@pytest.fixture
def world(make_world):
    return make_world().start()
