// SPDX-License-Identifier: MIT

// tec-test-regorus answers what tests/rego/main.go answers, in its format, by regorus: the engine
// that Trustee itself has. Optional, as nothing else here needs Rust:
//     cargo build --release --manifest-path tests/rego/regorus/Cargo.toml --target-dir DIR
//     TEC_TEST_REGORUS=DIR/release/tec-test-regorus python3 -m pytest tests/e2e/test_policies.py

use std::io::Read;

use anyhow::{anyhow, bail, Context, Result};
use regorus::{Engine, Value};
use serde_json::{json, Map, Value as Json};

const CLAIMS: [&str; 8] = [
    "instance-identity", "configuration", "executables", "file-system", "hardware", "runtime-opaque",
    "storage-opaque", "sourced-data",
];
const TIERS: [&str; 4] = ["none", "affirming", "warning", "contraindicated"];

/// The value of a rule; None: undefined.
fn evaluate(rule: &str, policy: &str, input: &Json, data: Option<&Json>, values: Option<&Json>) -> Result<Option<Json>> {
    let mut engine = Engine::new();
    if let Some(values) = values {
        let values = values.clone();
        engine.add_extension("query_reference_value".into(), 1, Box::new(move |args: Vec<Value>| {
            let name = args[0].as_string().context("query_reference_value: the name is no string")?;
            Value::from_json_str(&values.get(name.as_ref()).unwrap_or(&Json::Null).to_string())
        }))?;
    }
    engine.add_policy("policy.rego".into(), policy.into())?;
    if let Some(data) = data {
        engine.add_data(Value::from_json_str(&data.to_string())?)?;
    }
    engine.set_input(Value::from_json_str(&input.to_string())?);
    match engine.eval_rule(rule.into())? {
        Value::Undefined => Ok(None),
        v => Ok(Some(serde_json::from_str(&v.to_json_str()?)?)),
    }
}

fn tier(claim: i64) -> usize {
    let size = if claim < 0 { -claim - 1 } else { claim };
    match size {
        s if s <= 1 && claim >= -1 => 0,
        s if s <= 31 => 1,
        s if s <= 95 => 2,
        _ => 3,
    }
}

fn appraise(policy: &str, values: &Json, evidence: &Json) -> Result<(Json, Json, &'static str)> {
    let claims = evaluate("data.policy.trust_claims", policy, evidence, None, Some(values))
        .context("trust_claims")?
        .ok_or_else(|| anyhow!("trust_claims: undefined"))?;
    let mut worst = 0;
    for (name, claim) in claims.as_object().context("trust_claims is no object")? {
        let n = claim.as_i64().filter(|_| CLAIMS.contains(&name.as_str()));
        worst = worst.max(tier(n.ok_or_else(|| anyhow!("claim {name} is {claim}"))?));
    }
    let extensions = if policy.contains("\nextensions ") || policy.contains("\ndefault extensions ") {
        evaluate("data.policy.extensions", policy, evidence, None, Some(values))
            .context("extensions")?
            .ok_or_else(|| anyhow!("extensions: undefined"))?
    } else {
        json!([])
    };
    Ok((claims, extensions, TIERS[worst]))
}

fn decode(text: &str) -> Result<String> {
    let (bytes, mut out, mut i) = (text.as_bytes(), Vec::new(), 0);
    while i < bytes.len() {
        if bytes[i] == b'%' {
            out.push(u8::from_str_radix(text.get(i + 1..i + 3).context("an escape that is cut off")?, 16)?);
            i += 2;
        } else {
            out.push(bytes[i]);
        }
        i += 1;
    }
    Ok(String::from_utf8(out)?)
}

fn get(policy: &str, target: &str, token: &Json) -> Json {
    let allow = || -> Result<Json> {
        let (target, as_text) = target.strip_prefix("text:").map_or((target, false), |t| (t, true));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut asked = Map::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            asked.insert(decode(name)?, json!(decode(value)?));
        }
        let path = decode(path)?;
        let (plugin, path) = path.split_once('/').unwrap_or((&path, ""));
        let mut data = json!({"resource-path": path.split('/').collect::<Vec<_>>(), "query": asked});
        if as_text {
            data["resource-path"] = json!(format!("/{path}"));
        }
        if !plugin.is_empty() {
            data["plugin"] = json!(plugin);
        }
        evaluate("data.policy.allow", policy, token, Some(&data), None)?.ok_or_else(|| anyhow!("undefined"))
    };
    allow().unwrap_or_else(|e| json!(format!("{e:#}")))
}

fn run(attestation: &str, resource: &str, case: &Json) -> Result<Json> {
    let mut submods = case["submods"].as_object().cloned().unwrap_or_default();
    let (mut claims, mut extensions, mut status) = (vec![], vec![], vec![]);
    for (i, evidence) in case["evidence"].as_array().into_iter().flatten().enumerate() {
        let (c, e, s) = appraise(attestation, &case["values"], evidence)?;
        let mut submod = json!({"ear.status": s, "ear.trustworthiness-vector": c,
            "ear.appraisal-policy-id": "default", "ear.veraison.annotated-evidence": evidence});
        for extension in e.as_array().context("extensions are no list of objects with names")? {
            match extension["name"].as_str() {
                Some(name) => submod[name] = extension["value"].clone(),
                None => bail!("extensions are no list of objects with names"),
            }
        }
        submods.insert(format!("cpu{i}"), submod);
        claims.push(c);
        extensions.push(e);
        status.push(s);
    }
    let token = json!({"submods": submods, "iss": "CoCo-Attestation-Service",
        "eat_profile": "tag:github.com,2024:confidential-containers/Trustee"});
    let gets = case["gets"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let mut answer = Map::new();
    if !claims.is_empty() {
        answer.insert("claims".into(), json!(claims));
        answer.insert("extensions".into(), json!(extensions));
        answer.insert("status".into(), json!(status));
    }
    let allow: Vec<Json> = gets.map(|g| get(resource, g, &token)).collect();
    if !allow.is_empty() {
        answer.insert("allow".into(), json!(allow));
    }
    Ok(Json::Object(answer))
}

fn main() -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let asked: Json = serde_json::from_str(&text)?;
    let of = |name: &str| asked[name].as_str().map(str::to_owned).context("the question lacks a policy");
    let (attestation, resource) = (of("attestation")?, of("resource")?);
    for case in asked["cases"].as_array().context("no cases")? {
        let answer = run(&attestation, &resource, case).unwrap_or_else(|e| json!({"error": format!("{e:#}")}));
        println!("{answer}");
    }
    Ok(())
}
