//! Bytes and strings of the operating system in messages: JSON text if they are UTF-8, else a list of numbers.
//!
//! The derived forms are lists of numbers always, five times as long and slow to parse. Use the modules with
//! `#[serde(with = "…")]`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Borrowed bytes to write.
struct Written<'a>(&'a [u8]);

/// Bytes as read.
struct Read(Vec<u8>);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_seq(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Read;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text or a list of bytes")
            }

            fn visit_str<E>(self, text: &str) -> Result<Read, E> {
                Ok(Read(text.as_bytes().to_vec()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element()? {
                    bytes.push(byte);
                }
                Ok(Read(bytes))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// For `Vec<u8>`.
pub mod bytes {
    use super::*;

    /// Writes text or numbers.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        Written(bytes).serialize(serializer)
    }

    /// Reads what [`serialize`] wrote.
    ///
    /// # Errors
    /// Another value, or a number above 255.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Read::deserialize(from).map(|read| read.0)
    }
}

/// For `OsString`.
pub mod string {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use super::*;

    /// Writes text or numbers.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn serialize<S: Serializer>(string: &OsStr, serializer: S) -> Result<S::Ok, S::Error> {
        Written(string.as_bytes()).serialize(serializer)
    }

    /// Reads what [`serialize`] wrote.
    ///
    /// # Errors
    /// Another value, or a number above 255.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OsString, D::Error> {
        Read::deserialize(from).map(|read| OsString::from_vec(read.0))
    }
}

/// For `Vec<OsString>`.
pub mod strings {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use super::*;

    /// Writes a list of texts or numbers.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn serialize<S: Serializer>(list: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(|string| Written(string.as_bytes())))
    }

    /// Reads what [`serialize`] wrote.
    ///
    /// # Errors
    /// Another value, or a number above 255.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
        let list = Vec::<Read>::deserialize(from)?;
        Ok(list
            .into_iter()
            .map(|read| OsString::from_vec(read.0))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Message {
        #[serde(with = "super::bytes")]
        bytes: Vec<u8>,
        #[serde(with = "super::string")]
        string: OsString,
        #[serde(with = "super::strings")]
        list: Vec<OsString>,
    }

    #[test]
    fn each_form_reads_back_what_was_written() {
        let odd = || OsString::from_vec(b"a\xFF\0".to_vec());
        for (bytes, string, list) in [
            (b"".to_vec(), OsString::new(), vec![]),
            (
                b"\0\n\"\xC3\xA4".to_vec(),
                "ä \\".into(),
                vec!["x".into(), odd()],
            ),
            (b"\xFF\x00".to_vec(), odd(), vec![odd()]),
        ] {
            let message = Message {
                bytes,
                string,
                list,
            };
            let json = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        }
    }

    #[test]
    fn text_is_written_as_text_and_wrong_values_are_refused() {
        let message = Message {
            bytes: b"10 1 0:50 /".to_vec(),
            string: "/usr/bin".into(),
            list: vec!["-e".into()],
        };
        let json = serde_json::to_string(&message).unwrap();
        let expected = r#"{"bytes":"10 1 0:50 /","string":"/usr/bin","list":["-e"]}"#;
        assert_eq!(json, expected);
        for wrong in ["7", "[256]", "[\"x\"]", "null"] {
            let json = expected.replace("\"/usr/bin\"", wrong);
            assert!(serde_json::from_str::<Message>(&json).is_err(), "{wrong}");
        }
    }
}
