//! The journal: the accepted orders, on the node's disk.
//!
//! Owns the only use of redb, the file's schema and its version. A record is JSON under its order's id.
//! Each write is one durable commit on a blocking thread.

use std::{
    fs::{DirBuilder, Permissions},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::order_id::OrderId;
use node_rules::Record;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::task::spawn_blocking;

/// Incremented by each change that an older version cannot read.
const SCHEMA_VERSION: u64 = 1;

/// Enough for some thousand records; the default of redb is a gigabyte.
const CACHE: usize = 8 << 20;

const FILE: &str = "node-executor.redb";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const SCHEMA_KEY: &str = "schema_version";
const ORDERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("orders");

/// Why the journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("failed to restrict access to {0}")]
    Directory(PathBuf, #[source] std::io::Error),
    #[error("failed to open the journal {0}")]
    Open(PathBuf, #[source] Box<redb::Error>),
    #[error(
        "the journal {path} has schema {found}, this version supports up to {SCHEMA_VERSION}: \
         run the newer version, or remove the file and lose its unfinished orders"
    )]
    Newer { path: PathBuf, found: u64 },
    #[error("failed to read the records")]
    Read(#[source] Box<redb::Error>),
    #[error("failed to commit the records")]
    Write(#[source] Box<redb::Error>),
    #[error("the record of order {0} is not readable")]
    Record(String, #[source] serde_json::Error),
    #[error("the journal's thread ended early")]
    Thread(#[source] tokio::task::JoinError),
}

type Result<T, E = JournalError> = std::result::Result<T, E>;

#[derive(Clone)]
pub(crate) struct Journal(Arc<Database>);

/// A record as it is stored: its order's id and its JSON.
type Stored = (String, Vec<u8>);

// === impl Journal ===

impl Journal {
    /// Opens the journal in a directory; creates both if they are missing.
    pub(crate) async fn open(directory: &Path) -> Result<Self> {
        let directory = directory.to_owned();
        blocking(move || open(&directory)).await?
    }

    pub(crate) async fn load(&self) -> Result<Vec<Record>> {
        let database = self.0.clone();
        let stored = blocking(move || read(&database)).await?;
        let stored = stored.map_err(|error| JournalError::Read(Box::new(error)))?;
        let records = stored.into_iter().map(|(order, json)| {
            let record = serde_json::from_slice(&json);
            record.map_err(|error| JournalError::Record(order, error))
        });
        records.collect()
    }

    /// Writes and deletes records in one commit, which is durable on return.
    ///
    /// # Errors
    /// The records may not be durable: nothing that depends on them may be done.
    pub(crate) async fn write(&self, records: &[Record], forgotten: &[OrderId]) -> Result<()> {
        let mut stored = Vec::new();
        for record in records {
            let order = record.order.id.to_string();
            match serde_json::to_vec(record) {
                Ok(json) => stored.push((order, json)),
                Err(error) => return Err(JournalError::Record(order, error)),
            }
        }
        let forgotten = forgotten.iter().map(ToString::to_string).collect();
        let database = self.0.clone();
        let written = blocking(move || write(&database, stored, forgotten)).await?;
        written.map_err(|error| JournalError::Write(Box::new(error)))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.map_err(JournalError::Thread)
}

fn open(directory: &Path) -> Result<Journal> {
    // Readable by this user only: hooks may have credentials in their headers.
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(directory);
    created.map_err(restricting(directory))?;
    let path = directory.join(FILE);
    let opening = |error: redb::Error| JournalError::Open(path.clone(), Box::new(error));
    let database = Database::builder().set_cache_size(CACHE).create(&path);
    let database = database.map_err(|error| opening(error.into()))?;
    // The directory may already exist and be readable by other users.
    let restricted = std::fs::set_permissions(&path, Permissions::from_mode(0o600));
    restricted.map_err(restricting(&path))?;
    match set_schema(&database).map_err(opening)? {
        found if found > SCHEMA_VERSION => Err(JournalError::Newer { path, found }),
        _ => Ok(Journal(Arc::new(database))),
    }
}

fn restricting(path: &Path) -> impl FnOnce(std::io::Error) -> JournalError {
    let path = path.to_owned();
    move |error| JournalError::Directory(path, error)
}

/// Writes the schema's version and makes the tables, unless the file has a newer schema. Returns the version found.
fn set_schema(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let found = meta.get(SCHEMA_KEY)?.map(|version| version.value());
    let found = found.unwrap_or(SCHEMA_VERSION);
    if found <= SCHEMA_VERSION {
        meta.insert(SCHEMA_KEY, SCHEMA_VERSION)?;
        drop(meta);
        transaction.open_table(ORDERS)?;
        transaction.commit()?;
    }
    Ok(found)
}

fn read(database: &Database) -> Result<Vec<Stored>, redb::Error> {
    let orders = database.begin_read()?.open_table(ORDERS)?;
    let mut stored = Vec::new();
    for entry in orders.iter()? {
        let (id, json) = entry?;
        stored.push((id.value().to_owned(), json.value().to_owned()));
    }
    Ok(stored)
}

fn write(
    database: &Database,
    stored: Vec<Stored>,
    forgotten: Vec<String>,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    let mut orders = transaction.open_table(ORDERS)?;
    for (order, json) in stored {
        orders.insert(order.as_str(), json.as_slice())?;
    }
    for order in forgotten {
        orders.remove(order.as_str())?;
    }
    drop(orders);
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
