//! A case as text: what `runner init` writes from runs, ready to be read and tightened.

use model::case::client::{InlineVariable, VariableValue};
use model::case::expect::{Auth, ExpectedExit, Order, Records, RequestRule};
use model::case::{Count, Expectations, InlineClient, Limits, PathRule, Presence, Root, Tier};
use model::escape::visible;
use model::profile::{ExpectedFile, Files};

use crate::limits::unusual;

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
    /// Name of the stub's scenario; `None` for the usual answer.
    pub scenario: Option<&'a str>,
    /// Accepted kinds of isolation.
    pub tiers: &'a [Tier],
    /// Limits, of which the file has those that are not the usual ones.
    pub limits: &'a Limits,
    /// Expectations.
    pub expect: &'a Expectations,
    /// Rules that only a person may add, for a comment at the end.
    pub withheld: &'a Expectations,
    /// Behaviour without a rule, for a comment at the end.
    pub refused: &'a [String],
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
    if let Some(scenario) = case.scenario {
        text.table("[stub]");
        text.key("scenario", scenario);
    }
    let tiers: Vec<&str> = case.tiers.iter().map(|tier| tier.word()).collect();
    let exec: Vec<&str> = case.exec.iter().map(|tree| tree.word()).collect();
    let has_tiers = case.tiers != Tier::ALL;
    if has_tiers || !exec.is_empty() {
        text.table("[sandbox]");
    }
    if has_tiers {
        text.line(&format!("tiers = {}", list(&tiers)));
    }
    if !exec.is_empty() {
        text.line(&format!("allow_exec = {}", list(&exec)));
    }
    let limits = unusual(case.limits);
    if !limits.is_empty() {
        text.table("[sandbox.limits]");
        for (name, value) in limits {
            text.line(&format!("{name} = {value}"));
        }
    }
    expect(&mut text, case.expect);
    if !case.refused.is_empty() {
        text.blank();
        text.comment("No rule can accept the following, which the runs showed:");
        for line in case.refused {
            text.comment(&format!("- {line}"));
        }
    }
    let mut withheld = Text::default();
    case.withheld
        .files
        .iter()
        .for_each(|files| file_rules(&mut withheld, files));
    attempts(&mut withheld, case.withheld);
    if !withheld.0.is_empty() {
        text.blank();
        text.comment("Rules that only you can allow: remove the # of each line, and give a reason of your own.");
        for line in withheld.0.lines().skip(1) {
            text.line(&format!("#{line}"));
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

/// Writes a TOML basic string. JSON has the same escapes except for DEL.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}

fn list(values: &[impl AsRef<str>]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value.as_ref())).collect();
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
    if let Some(project) = &client.project {
        text.key("project", project);
    }
    text.key("program", &client.program);
    text.line(&format!("arguments = {}", list(&client.arguments)));
    if let Some(prompt) = &client.prompt {
        text.key("prompt", prompt);
    }
    if let Some(cwd) = &client.cwd {
        text.key("cwd", cwd);
    }
    if let Some(stdin) = &client.stdin {
        text.key("stdin", stdin);
    }
    if let Some(toolchain) = client.toolchain {
        text.key("toolchain", toolchain.word());
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

fn expect(text: &mut Text, expect: &Expectations) {
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
    text.table("[expect.records]");
    match expect.records {
        Some(Records::JsonLines | Records::AgentStream(_)) => text.key("format", "json-lines"),
        None => text.line("format = \"none\"             # standard output is not judged"),
    }
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
    attempts(text, expect);
}

fn attempts(text: &mut Text, expect: &Expectations) {
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

fn expected_files(text: &mut Text, files: &Files) {
    text.blank();
    text.comment("Files that the client leaves, and no others.");
    text.line("[expect.files]");
    file_rules(text, files);
}

fn file_rules(text: &mut Text, files: &Files) {
    for rule in &files.expected {
        text.table("[[expect.files.rule]]");
        place(text, rule);
        if let Some(mode) = rule.mode {
            text.key("mode", &format!("{mode:04o}"));
        }
        text.line(&count(rule.count));
        if rule.may_hold_credential {
            text.line("may_hold_credential = true");
        }
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
