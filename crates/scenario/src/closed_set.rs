//! Closed sets: enums whose words are defined once, for files, reports and schemas.

/// Defines an enum with one stable word per variant.
///
/// The enum gets `ALL` and `word`, and serde and the JSON Schema use the same words. The crate that calls the macro needs
/// serde and schemars as dependencies.
#[macro_export]
macro_rules! closed_set {
    ($(
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$about:meta])* $variant:ident = $word:literal,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        $vis enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant,)+
        }

        #[allow(dead_code, reason = "a set may be read and written, and never listed")]
        impl $name {
            /// All values, in the order of their definition.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the word in files and reports.
            $vis const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::core::convert::AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.word()
            }
        }
    )+};
}
