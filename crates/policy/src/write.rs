//! A case as text: what `runner init` writes from runs, ready to be read and tightened.

use model::case::client::{InlineVariable, VariableValue};
use model::case::expect::{
    Auth, ExpectedExit, FieldRule, Format, Order, RecordRule, RecordRules, Records, RequestRule,
    ValueRule,
};
use model::case::{Count, Expectations, InlineClient, PathRule, Presence, Root};
use model::escape::{is_dangerous, visible};
use model::profile::{ExpectedFile, Files};

/// A case to write.
#[derive(Debug)]
pub struct NewCase<'a> {
    /// Name of the case.
    pub name: &'a str,
    /// Lines of the comment at the beginning.
    pub about: &'a [String],
    /// Client of the case.
    pub client: &'a InlineClient,
    /// Writable trees with programs.
    pub exec: &'a [Root],
    /// Expectations.
    pub expect: &'a Expectations,
    /// Behaviour without a rule, for a comment at the end.
    pub refused: &'a [String],
    /// Reason why records have no form or no rules, for a comment.
    pub records_not_judged: Option<&'a str>,
}

/// Returns the text of a case file.
pub fn case(case: &NewCase<'_>) -> String {
    let mut text = Text::default();
    text.line("schema = \"runner.case/1\"");
    text.key("name", case.name);
    for line in case.about {
        text.comment(line);
    }
    client(&mut text, case.client);
    if !case.exec.is_empty() {
        let trees: Vec<String> = case
            .exec
            .iter()
            .map(|tree| tree.word().to_owned())
            .collect();
        text.table("[sandbox]");
        text.line(&format!("allow_exec = {}", list(&trees)));
    }
    expect(&mut text, case.expect, case.records_not_judged);
    if !case.refused.is_empty() {
        text.blank();
        text.comment("No rule can accept the following, which the runs showed:");
        for line in case.refused {
            text.comment(&format!("- {line}"));
        }
    }
    text.0
}

/// Lines of a TOML file.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        self.line(&format!("# {}", visible(text)));
    }

    fn table(&mut self, header: &str) {
        self.blank();
        self.line(header);
    }

    fn key(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", quoted(value)));
    }
}

/// Writes a TOML basic string, whose dangerous characters are escaped.
fn quoted(text: &str) -> String {
    let mut string = String::from('"');
    let mut before = None;
    for c in text.chars() {
        match c {
            '"' | '\\' => string.extend(['\\', c]),
            '\n' => string.push_str("\\n"),
            '\t' => string.push_str("\\t"),
            _ if is_dangerous(before, c) => {
                string.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            _ => string.push(c),
        }
        before = Some(c);
    }
    string.push('"');
    string
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

fn count(count: Count) -> String {
    match count.to {
        Some(to) => format!("count = {{ from = {}, to = {to} }}", count.from),
        None => format!("count = {{ from = {} }}", count.from),
    }
}

fn client(text: &mut Text, client: &InlineClient) {
    text.table("[client]");
    text.key("program", &client.program);
    text.line(&format!("arguments = {}", list(&client.arguments)));
    if let Some(prompt) = &client.prompt {
        text.key("prompt", prompt);
    }
    if let Some(cwd) = &client.cwd {
        text.key("cwd", cwd);
    }
    for InlineVariable {
        name,
        value,
        reason,
    } in &client.environment
    {
        text.table("[[client.environment]]");
        text.key("name", name);
        match value {
            VariableValue::Text(value) => text.key("value", value),
            VariableValue::OfCaller => text.line("from_env = true"),
        }
        text.key("reason", reason);
    }
    for PathRule {
        path,
        access,
        presence,
        reason,
    } in &client.paths
    {
        text.table("[[client.paths]]");
        text.key("path", &path.to_string_lossy());
        text.key("access", access.word());
        if *presence == Presence::IfPresent {
            text.line("if_present = true");
        }
        text.key("reason", reason);
    }
}

fn expect(text: &mut Text, expect: &Expectations, records_not_judged: Option<&str>) {
    if let Some(exit) = expect.exit {
        text.table("[expect.exit]");
        match exit {
            ExpectedExit::Code(code) => text.line(&format!("code = {code}")),
            ExpectedExit::AnyCode => {
                text.comment("Several codes were seen; without `code`, any is right.")
            }
        }
    }
    if let Some(requests) = &expect.requests {
        text.table("[expect.requests]");
        text.key("order", requests.order.word());
        if requests.order == Order::Any {
            text.comment("The order differed between the runs.");
        }
        for rule in &requests.rules {
            request(text, rule);
        }
    }
    records(text, expect.records.as_ref(), records_not_judged);
    if let Some(files) = &expect.files {
        expected_files(text, files);
    }
    if let Some(programs) = &expect.programs {
        text.blank();
        text.comment("Programs that the client starts beside its own, and no others.");
        text.line("[expect.programs]");
        for rule in programs {
            text.table("[[expect.programs.rule]]");
            text.key("program", &rule.program.to_string());
            text.key("reason", &rule.reason);
        }
    }
    for rule in &expect.attempts {
        text.table("[[expect.attempts.rule]]");
        text.key("destination", &rule.destination.to_string());
        text.key("reason", &rule.reason);
    }
}

fn request(text: &mut Text, rule: &RequestRule) {
    text.table("[[expect.requests.rule]]");
    text.key("name", &rule.name);
    if let Some(protocol) = rule.protocol {
        text.key("protocol", protocol.word());
    }
    text.key("method", &rule.method);
    text.key("path", &rule.path.to_string());
    text.line(&count(rule.count));
    if !rule.queries.is_empty() {
        text.line(&format!("queries = {}", list(&rule.queries)));
    }
    match &rule.auth {
        Auth::Header(header) => text.key("auth", header),
        Auth::None => text.key("auth", "none"),
        Auth::Any => {}
    }
    if let Some(agent) = &rule.user_agent {
        text.key("user_agent", agent);
    }
    if let Some(fields) = &rule.body.fields {
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        text.line(&format!("body = {{ fields = {} }}", list(&names)));
    }
    text.key("reason", &rule.reason);
}

fn records(text: &mut Text, records: Option<&Records>, not_judged: Option<&str>) {
    text.table("[expect.records]");
    if let Some(why) = not_judged {
        text.comment(&format!("Records are not judged: {why}."));
    }
    let format = records.map_or(Format::None, Records::format);
    text.key("format", format.word());
    let rules = records.and_then(|records| records.rules.as_ref());
    let Some(RecordRules { order, rules }) = rules else {
        return;
    };
    text.key("order", order.word());
    for rule in rules {
        record(text, rule);
    }
}

fn record(text: &mut Text, rule: &RecordRule) {
    text.table("[[expect.records.rule]]");
    let field = |field: &FieldRule| format!("{} = {}", quoted(&field.pointer), value(&field.value));
    if !rule.conditions.is_empty() {
        let conditions: Vec<String> = rule.conditions.iter().map(field).collect();
        text.line(&format!("where = {{ {} }}", conditions.join(", ")));
    }
    text.line(&count(rule.count));
    text.key("reason", &rule.reason);
    if !rule.fields.is_empty() {
        text.table("[expect.records.rule.fields]");
    }
    for line in rule.fields.iter().map(field) {
        text.line(&line);
    }
}

fn value(rule: &ValueRule) -> String {
    match rule {
        ValueRule::Text(pattern) => quoted(&pattern.to_string()),
        ValueRule::Number(number) => number.to_string(),
        ValueRule::Boolean(value) => value.to_string(),
        ValueRule::List(items) => {
            let items: Vec<String> = items.iter().map(value).collect();
            format!("[{}]", items.join(", "))
        }
        ValueRule::Kinds(kinds) => match kinds.as_slice() {
            [kind] => format!("{{ type = {} }}", quoted(kind.word())),
            kinds => {
                let kinds: Vec<String> = kinds.iter().map(|kind| kind.word().to_owned()).collect();
                format!("{{ type = {} }}", list(&kinds))
            }
        },
    }
}

fn expected_files(text: &mut Text, files: &Files) {
    text.blank();
    text.comment("Files that the client leaves, and no others.");
    text.line("[expect.files]");
    for rule in &files.expected {
        text.table("[[expect.files.rule]]");
        place(text, rule);
        if let Some(mode) = rule.mode {
            text.key("mode", &format!("{mode:04o}"));
        }
        text.line(&count(rule.count));
        text.key("reason", &rule.reason);
    }
    for rule in &files.transient {
        text.table("[[expect.files.transient]]");
        place(text, rule);
        text.key("reason", &rule.reason);
    }
}

fn place(text: &mut Text, rule: &ExpectedFile) {
    text.key("in", rule.root.word());
    text.key("path", &rule.path.to_string());
}
