//! What the protocol asks of a server, answered by the commands.
//!
//! Owns what is served where: a brief call at once, others in threads of their own, with progress
//! and an early end. Errors of the protocol are for requests that reach no tool at all.

use std::io::{PipeReader, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

use baton_engine::doors::askers::Said;
use baton_engine::workspace::PATIENCE;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestMetaObject,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::answer::{Told, cut, defect};
use super::floor::{Caller, Order};
use super::requests::{Call, Meant};
use super::tools::{self, Asked};
use super::{Room, pages, relay};

const INSTRUCTIONS: &str = "Baton keeps several agents and people on one codebase from stepping on \
each other. Begin with status; take a task (task_take) or claim what you will change; finish with \
task_update done. A refusal says who, until when and why, and what to do next.";

/// How long others may be at the store before a brief call goes to a thread of its own.
pub(super) const MOMENT: Duration = Duration::from_millis(20);
/// What a brief call may be told that a second try may not: others were at the store, or the
/// session of whoever acted last is not the caller's any more.
const AGAIN: &[&str] =
    &["busy", "no_session", "unknown_session", "bad_credential", "session_ended"];

#[derive(Clone, Debug)]
pub(super) struct Server {
    room: Arc<Room>,
    /// True once the client has closed its end.
    end: watch::Receiver<bool>,
    /// For brief calls: nobody can end them early, and nobody needs to.
    never: (Arc<PipeReader>, Arc<PipeWriter>),
}

impl Server {
    pub(super) fn new(room: Arc<Room>, end: watch::Receiver<bool>) -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        Ok(Self { room, end, never: (Arc::new(reader), Arc::new(writer)) })
    }

    /// Serves a brief call where it arrived: handing it to another thread and back would take as
    /// long as the call itself. Nothing when the store is not open yet, others are at it for more
    /// than a moment, or who acted last is not who calls.
    fn serve_at_once(&self, call: &Call, context: &RequestContext<RoleServer>) -> Option<Told> {
        let Room::Here(floor) = &*self.room else { return None };
        if !floor.is_warm() {
            return None;
        }
        let meant = call.read().ok().filter(|meant| meant.brief)?;
        let served = floor.serve(Order {
            caller: caller(context),
            asker: asker(&context.meta),
            folder: meant.folder,
            acts: meant.acts,
            remembers: true,
            steps: meant.steps,
            committed: None,
            end: Arc::clone(&self.never.0),
            hear: Box::new(|_| {}),
            patience: MOMENT,
        });
        let code = served.problem.as_ref().map_or("", |problem| problem.code);
        (!AGAIN.contains(&code)).then(|| served.into())
    }

    /// Serves a call in a thread of its own, telling how it goes on, until it is done. A client
    /// that does not want it any more, or is gone, ends it early.
    async fn serve(&self, call: Call, meant: Meant, context: &RequestContext<RoleServer>) -> Told {
        let (reader, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return defect(&error.to_string()).into(),
        };
        let (sender, mut heard) = mpsc::unbounded_channel::<String>();
        let (caller, asker) = (caller(context), asker(&context.meta));
        let room = Arc::clone(&self.room);
        let mut call = tokio::task::spawn_blocking(move || {
            let hear = move |text: &str| drop(sender.send(text.to_owned()));
            let Room::Here(floor) = &*room else {
                return relay::serve(&call, &meant.steps, &reader, &hear);
            };
            let Meant { steps, acts, folder, .. } = meant;
            let (end, hear, patience) = (Arc::new(reader), Box::new(hear), PATIENCE);
            let (remembers, committed) = (false, None);
            let order = Order {
                caller,
                asker,
                folder,
                acts,
                remembers,
                steps,
                committed,
                end,
                hear,
                patience,
            };
            floor.serve(order).into()
        });
        let mut writer: Option<PipeWriter> = Some(writer);
        let mut told = 0.0;
        loop {
            tokio::select! {
                served = &mut call => {
                    return served.unwrap_or_else(|error| defect(&error.to_string()).into());
                }
                // Whoever waits sleeps on the other end of this.
                () = context.ct.cancelled(), if writer.is_some() => writer = None,
                () = over(self.end.clone()), if writer.is_some() => writer = None,
                Some(text) = heard.recv(), if writer.is_some() => {
                    told += 1.0;
                    progress(context, told, text, self.end.clone()).await;
                }
            }
        }
    }
}

/// Tells the client how it goes, if it wants to know.
async fn progress(
    context: &RequestContext<RoleServer>,
    told: f64,
    text: String,
    end: watch::Receiver<bool>,
) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let news = ProgressNotificationParam::new(token, told).with_message(text);
    tokio::select! {
        _ = context.peer.notify_progress(news) => {}
        // Nobody sends any more then.
        () = over(end) => {}
    }
}

/// Until the client has closed its end.
pub(super) async fn over(mut end: watch::Receiver<bool>) {
    // Without the thread that reads there is no client either.
    drop(end.wait_for(|ended| *ended).await);
}

fn caller(context: &RequestContext<RoleServer>) -> Caller {
    Caller {
        session: client_session(&context.meta),
        name: context.client_info().map(|client| client.name),
    }
}

/// The session that the client itself says it is, where it does.
fn client_session(meta: &RequestMetaObject) -> Option<(String, String)> {
    let (session, thread) = codex(meta)?;
    Some(("codex".to_owned(), session.or(thread)?))
}

/// What the client says of which of its subagents calls. In Codex each is a thread of the session;
/// Claude Code has told a hook whose call this is.
fn asker(meta: &RequestMetaObject) -> Option<Said> {
    if let Some((Some(session), Some(thread))) = codex(meta) {
        return (session != thread).then_some(Said::Agent(thread));
    }
    let call = meta.get("claudecode/toolUseId")?.as_str()?;
    Some(Said::Call(call.to_owned()))
}

/// The session and the thread that Codex says.
fn codex(meta: &RequestMetaObject) -> Option<(Option<String>, Option<String>)> {
    let told = meta.get("x-codex-turn-metadata")?;
    let read;
    let told = match told {
        Value::String(text) => {
            read = serde_json::from_str::<Value>(text).ok()?;
            &read
        }
        told => told,
    };
    let id = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
    Some((id("session_id"), id("thread_id")))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> ErrorData {
    let name = cut(&crate::render::shown(name));
    let message = format!("there is no {what} {name:?}; there are {}", known.join(", "));
    ErrorData::invalid_params(message, None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("baton", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (caller, room) = (caller(&context), Arc::clone(&self.room));
        let never = Arc::clone(&self.never.0);
        let role = tokio::task::spawn_blocking(move || match &*room {
            Room::Here(floor) => floor.role(&caller),
            Room::Outside => relay::role(&never),
        });
        // What keeps a role from being known takes no tool away: the doors hold it all the same.
        let role = role.await.unwrap_or_default();
        let offered = tools::TOOLS.iter().filter(|tool| tool.is_for(role.as_ref()));
        let tools: Vec<Tool> = offered.map(Asked::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::named(&request.name) else {
            let known: Vec<&str> = tools::TOOLS.iter().map(|tool| tool.name).collect();
            return Err(unknown("tool", &request.name, &known));
        };
        let given = request.arguments.unwrap_or_default();
        let call = Call::Tool { name: tool.name.to_owned(), given };
        if let Some(told) = self.serve_at_once(&call, &context) {
            return Ok(told.result(true).into());
        }
        Ok(match call.read() {
            Err(problem) => Told::from(problem).result(true).into(),
            Ok(meant) => {
                let must_succeed = meant.must_succeed;
                self.serve(call, meant, &context).await.result(must_succeed).into()
            }
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(pages::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(pages::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = Call::Page { uri: request.uri.clone() };
        let Ok(meant) = call.read() else {
            let known =
                ["baton://status", "baton://journal", "baton://task/ID", "baton://handoff/ID"];
            let mut error = unknown("resource", &request.uri, &known);
            error.data = Some(json!({ "uri": cut(&request.uri) }));
            return Err(error);
        };
        let told = self.serve(call, meant, &context).await;
        if let Some(refused) = &told.refused {
            let message = format!("{}; next: {}", refused.message, refused.next);
            let data = Some(json!({ "uri": request.uri }));
            // Where the store gave no answer, nobody knows whether there is such a page.
            return Err(match refused.is_no_answer() {
                true => ErrorData::internal_error(message, data),
                false => ErrorData::resource_not_found(message, data),
            });
        }
        let page = ResourceContents::text(told.text, request.uri);
        Ok(ReadResourceResult::new(vec![page]).into())
    }

    /// There are none. An empty list would say that there could be some.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    /// A method that nobody knows, or a known one with parameters that nobody understands.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = crate::render::shown(&request.method);
        Err(match request.method.as_str() {
            "tools/call" | "resources/read" | "initialize" => ErrorData::invalid_params(
                format!("{method} cannot be asked with these parameters"),
                None,
            ),
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        })
    }
}
