//! Lines of JSON between the client and us.
//!
//! Owns reading and writing, and what becomes of lines that are no message: one that is no JSON is
//! passed over, as everywhere in this protocol, since an answer to it could be answered in turn;
//! one that asks something in a way nobody understands gets an error under its id, so that nobody
//! waits for it. Invariant: no line ends the server, however long or broken; the end of input does.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex};

use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::hooks::lenient;

/// A longer line is passed over.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Messages that are read ahead of their turn.
const AHEAD_MAX: usize = 64;
const READ_BYTES: usize = 64 * 1024;

pub(super) struct Wire {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Output,
    /// The first request is there: notifications before it belong to nothing, and would end the
    /// handshake.
    begun: bool,
}

#[derive(Clone)]
struct Output(Arc<Mutex<File>>);

impl Output {
    /// One line in one write. It may block where the client does not read: then there is nobody
    /// to be served either, and the end of input is seen by another thread.
    fn put(&self, message: &impl serde::Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(&line)
    }
}

impl Wire {
    /// Reads in a thread of its own from here on; `ended` becomes true at the end of input.
    pub(super) fn open(
        input: File,
        output: File,
        ended: watch::Sender<bool>,
    ) -> std::io::Result<Self> {
        let output = Output(Arc::new(Mutex::new(output)));
        let (sender, incoming) = mpsc::channel(AHEAD_MAX);
        let reader = Reader { output: output.clone(), sender };
        std::thread::Builder::new().name("mcp input".into()).spawn(move || {
            reader.read(BufReader::with_capacity(READ_BYTES, input));
            let _ = ended.send(true);
        })?;
        Ok(Self { incoming, output, begun: false })
    }
}

impl Transport<RoleServer> for Wire {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = self.output.clone();
        async move { output.put(&message) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.incoming.recv().await?;
            self.begun |= matches!(message, ClientJsonRpcMessage::Request(_));
            if self.begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

struct Reader {
    output: Output,
    sender: mpsc::Sender<ClientJsonRpcMessage>,
}

impl Reader {
    /// To the end of input, or until nobody listens.
    fn read(&self, mut input: impl BufRead) {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let (taken, complete) = match input.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) | Ok([]) => return,
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let taken = end.map_or(bytes.len(), |end| end + 1);
                    too_long |= line.len() + taken > LINE_BYTES_MAX;
                    if !too_long {
                        line.extend_from_slice(&bytes[..taken]);
                    }
                    (taken, end.is_some())
                }
            };
            input.consume(taken);
            if !complete {
                continue;
            }
            if !too_long && !self.take(line.trim_ascii()) {
                return;
            }
            too_long = false;
            line.clear();
            line.shrink_to(READ_BYTES);
        }
    }

    /// One line; false when nobody listens any more.
    fn take(&self, line: &[u8]) -> bool {
        if line.is_empty() {
            return true;
        }
        if let Ok(message) = serde_json::from_slice(line) {
            return self.sender.blocking_send(message).is_ok();
        }
        let Some(value) = lenient::parse(line) else { return true };
        match ClientJsonRpcMessage::deserialize(&value) {
            Ok(message) => self.sender.blocking_send(message).is_ok(),
            Err(_) => {
                let _ = self.output.put(&not_understood(&value));
                true
            }
        }
    }
}

/// The answer to JSON that is no message.
fn not_understood(value: &Value) -> Value {
    let id = value.get("id").filter(|id| id.is_string() || id.is_number());
    let (code, message) = match value.get("method") {
        Some(Value::String(method)) => (-32602, format!("{method:?} cannot be asked like this")),
        _ => (-32600, "this is no request".to_owned()),
    };
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
