//! Cases as text: a whole one, as `runner init` writes it from runs, and changes of one.

mod change;

use model::case::client::{InlineVariable, VariableValue};
use model::case::expect::{
    Auth, BodyField, BodyRules, ExpectedExit, FieldRule, Format, HeaderRules, Order, ProgramRule,
    RecordRule, RecordRules, Records, RequestRule, ValueRule,
};
use model::case::{Count, Expectations, InlineClient, Limits, PathRule, Presence, Root, Tier};
use model::escape::{is_dangerous, visible};
use model::profile::{ExpectedAttempt, ExpectedFile, Files};

pub use change::changes;

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
    /// Comment on records without a form or rules.
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
    expect(&mut text, case.expect, case.records_not_judged);
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

/// Longest line of fields; more are a table of their own.
const MAX_LINE: usize = 100;

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

    /// Writes a table on one line, of the keys with a value.
    fn inline<const N: usize>(&mut self, name: &str, keys: [(&str, Option<String>); N]) {
        let keys = keys.into_iter();
        let keys = keys.filter_map(|(key, value)| Some(format!("{key} = {}", value?)));
        let keys: Vec<String> = keys.collect();
        if !keys.is_empty() {
            self.line(&format!("{name} = {{ {} }}", keys.join(", ")));
        }
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

fn expect(text: &mut Text, expect: &Expectations, records_not_judged: Option<&str>) {
    if let Some(exit) = expect.exit {
        self::exit(text, exit);
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
            program(text, rule);
        }
    }
    attempts(text, expect);
}

fn attempts(text: &mut Text, expect: &Expectations) {
    for rule in &expect.attempts {
        attempt(text, rule);
    }
}

fn exit(text: &mut Text, exit: ExpectedExit) {
    text.table("[expect.exit]");
    match exit {
        ExpectedExit::Code(code) => text.line(&format!("code = {code}")),
        ExpectedExit::AnyCode => {
            text.comment("Several codes were seen; without `code`, any is right.")
        }
    }
}

fn program(text: &mut Text, rule: &ProgramRule) {
    text.table("[[expect.programs.rule]]");
    text.key("program", &rule.program.to_string());
    text.key("reason", &rule.reason);
}

fn attempt(text: &mut Text, rule: &ExpectedAttempt) {
    text.table("[[expect.attempts.rule]]");
    text.key("destination", &rule.destination.to_string());
    text.key("reason", &rule.reason);
}

fn request(text: &mut Text, rule: &RequestRule) {
    text.table("[[expect.requests.rule]]");
    text.key("name", &rule.name);
    if let Some(profile) = rule.profile {
        text.key("profile", profile.word());
    }
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
    let HeaderRules {
        allowed,
        required,
        forbidden,
    } = &rule.headers;
    let some = |names: &Vec<String>| (!names.is_empty()).then(|| list(names));
    text.inline(
        "headers",
        [
            ("allowed", allowed.as_ref().map(|names| list(names))),
            ("required", some(required)),
            ("forbidden", some(forbidden)),
        ],
    );
    if let Some(agent) = &rule.user_agent {
        text.key("user_agent", agent);
    }
    body(text, &rule.body);
    text.key("reason", &rule.reason);
}

fn body(text: &mut Text, rules: &BodyRules) {
    let number = |number: Option<usize>| number.map(|number| number.to_string());
    let marks = rules.cache_control.as_ref().map(|marks| {
        let (system_count, user) = (marks.system_count, &marks.user);
        format!("{{ system_count = {system_count}, user = {user:?} }}")
    });
    text.inline(
        "body",
        [
            (
                "fields",
                rules.fields.as_ref().map(|fields| self::fields(fields)),
            ),
            ("user_blocks", number(rules.user_blocks)),
            ("system_blocks", number(rules.system_blocks)),
            ("cache_control", marks),
            ("tools", rules.no_tools.then(|| quoted("empty"))),
            ("stream", rules.stream.then(|| "true".to_owned())),
        ],
    );
}

/// Writes a list of names, or a table of names and types.
fn fields(fields: &[BodyField]) -> String {
    let typed = fields.iter().map(|field| {
        let kind = quoted(field.kind?.word());
        Some(format!("{} = {kind}", quoted(&field.name)))
    });
    match typed.collect::<Option<Vec<String>>>() {
        Some(typed) if !typed.is_empty() => format!("{{ {} }}", typed.join(", ")),
        _ => list(
            &fields
                .iter()
                .map(|field| field.name.clone())
                .collect::<Vec<_>>(),
        ),
    }
}

fn records(text: &mut Text, records: Option<&Records>, not_judged: Option<&str>) {
    text.table("[expect.records]");
    if let Some(why) = not_judged {
        text.comment(why);
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
    if let Some(conditions) = conditions(rule) {
        text.line(&conditions);
    }
    text.line(&count(rule.count));
    let fields: Vec<String> = rule.fields.iter().map(field).collect();
    let line = format!("fields = {{ {} }}", fields.join(", "));
    let is_short = line.len() <= MAX_LINE;
    if !fields.is_empty() && is_short {
        text.line(&line);
    }
    text.key("reason", &rule.reason);
    if !is_short {
        text.table("[expect.records.rule.fields]");
        fields.iter().for_each(|line| text.line(line));
    }
}

/// Key `where` of a rule with conditions.
fn conditions(rule: &RecordRule) -> Option<String> {
    let conditions: Vec<String> = rule.conditions.iter().map(field).collect();
    let is_some = !conditions.is_empty();
    is_some.then(|| format!("where = {{ {} }}", conditions.join(", ")))
}

fn field(rule: &FieldRule) -> String {
    format!("{} = {}", quoted(&rule.pointer), value(&rule.value))
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
    file_rules(text, files);
}

fn file_rules(text: &mut Text, files: &Files) {
    for rule in &files.expected {
        file(text, rule);
    }
    for rule in &files.transient {
        text.table("[[expect.files.transient]]");
        place(text, rule);
        text.key("reason", &rule.reason);
    }
}

fn file(text: &mut Text, rule: &ExpectedFile) {
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

fn place(text: &mut Text, rule: &ExpectedFile) {
    text.key("in", rule.root.word());
    text.key("path", &rule.path.to_string());
}
