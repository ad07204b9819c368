//! Side requests: known requests besides the turn, and the rule that recognises them.
//!
//! A side request is classified so that the checks of the turn see only requests of the turn. [`SideRequest::expected`]
//! decides whether it is a finding, in cases that allow other requests.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use crate::shape;

/// Path of the message request.
pub const MESSAGES: &str = "/v1/messages";

/// A side request: a known request besides the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideRequest {
    /// Name: `session title`.
    pub name: String,
    /// HTTP method: `POST`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Keys that the body has.
    pub with: Vec<KeyPath>,
    /// Keys that the body does not have.
    pub without: Vec<KeyPath>,
    /// True if the request is not a finding in a case that allows other requests.
    pub expected: bool,
    /// Reason why the client sends the request.
    pub reason: String,
}

impl SideRequest {
    /// Returns true if a request matches; `body` is the shape of a complete JSON body. A rule with keys does not match
    /// other bodies.
    pub fn fits(&self, method: &str, path: &str, body: Option<&Value>) -> bool {
        let keys_fit = match body {
            Some(body) => {
                self.with.iter().all(|key| key.is_in(body))
                    && !self.without.iter().any(|key| key.is_in(body))
            }
            None => self.with.is_empty() && self.without.is_empty(),
        };
        self.method == method && self.path == path && keys_fit
    }
}

/// Path of a key in the objects of a body: `output_config.format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPath(Vec<String>);

/// The text is not a list of keys joined by dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not keys of letters, digits, `_` and `-`, joined by dots")]
pub struct KeyPathError;

impl KeyPath {
    /// Returns true if the shape has the key. Arrays and texts are not searched.
    fn is_in(&self, shape: &Value) -> bool {
        let found = self.0.iter().try_fold(shape, |value, key| {
            value.get(key).filter(|_| !shape::is_text(value))
        });
        found.is_some()
    }
}

impl FromStr for KeyPath {
    type Err = KeyPathError;

    fn from_str(text: &str) -> Result<Self, KeyPathError> {
        let is_key = |key: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            !key.is_empty() && key.len() <= shape::MAX_NAME_BYTES && key.chars().all(fits)
        };
        if !text.split('.').all(is_key) {
            return Err(KeyPathError);
        }
        Ok(Self(text.split('.').map(str::to_owned).collect()))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(with: &[&str], without: &[&str]) -> SideRequest {
        let keys = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
        SideRequest {
            name: "session title".to_owned(),
            method: "POST".to_owned(),
            path: MESSAGES.to_owned(),
            with: keys(with),
            without: keys(without),
            expected: true,
            reason: "it names the session".to_owned(),
        }
    }

    #[test]
    fn method_path_and_keys_must_all_fit() {
        let body = json!({"output_config": {"format": {"type": "json_schema"}}, "tools": []});
        let fits = |rule: &SideRequest| rule.fits("POST", MESSAGES, Some(&body));
        assert!(fits(&rule(&["output_config.format"], &[])));
        assert!(fits(&rule(
            &["output_config.format", "tools"],
            &["context_management"]
        )));
        assert!(!fits(&rule(&["output_config.effort"], &[])));
        assert!(!fits(&rule(&["output_config"], &["output_config.format"])));
        let rule = rule(&["tools"], &[]);
        assert!(!rule.fits("PUT", MESSAGES, Some(&body)));
        assert!(!rule.fits("POST", "/v1/messages/x", Some(&body)));
    }

    #[test]
    fn neither_arrays_nor_texts_are_looked_into() {
        let text = json!({"bytes": 3, "sha256": "00"});
        let body = json!({"model": text, "system": [{"type": "text"}]});
        for key in ["model.bytes", "system.type", "system.0"] {
            assert!(
                !rule(&[key], &[]).fits("POST", MESSAGES, Some(&body)),
                "{key}"
            );
        }
        assert!(rule(&["model"], &["model.bytes"]).fits("POST", MESSAGES, Some(&body)));
    }

    #[test]
    fn a_body_that_is_no_json_fits_only_a_rule_without_keys() {
        assert!(rule(&[], &[]).fits("POST", MESSAGES, None));
        assert!(!rule(&[], &["tools"]).fits("POST", MESSAGES, None));
        assert!(!rule(&["tools"], &[]).fits("POST", MESSAGES, None));
    }

    #[test]
    fn keys_have_one_spelling() {
        for text in ["tools", "output_config.format", "a-b.c_d.0"] {
            assert_eq!(text.parse::<KeyPath>().unwrap().to_string(), text);
        }
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a[0]", "é"] {
            assert_eq!(text.parse::<KeyPath>(), Err(KeyPathError), "{text}");
        }
    }
}
