//! The journal: what this node has promised, on its disk.
//!
//! Owns the only use of redb, the file's schema and its version. A record is JSON under its order's id.
//! Each write is one durable commit, done where it blocks nobody.

use std::{
    fs::Permissions,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::ids::OrderId;
use node_rules::Record;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::task::spawn_blocking;

/// Grows with each change that an older reader could not read.
const SCHEMA_VERSION: u64 = 1;

/// Some thousand records; redb would take up to a gigabyte.
const CACHE: usize = 8 << 20;

const FILE: &str = "node-executor.redb";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const SCHEMA_KEY: &str = "schema_version";
const ORDERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("orders");

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("failed to make {path} ours alone")]
    Directory {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to open the journal {path}")]
    Open {
        path: PathBuf,
        #[source]
        source: Box<redb::Error>,
    },
    #[error(
        "the journal {path} has schema {found}, this version knows {SCHEMA_VERSION}: \
         run the newer version again, or remove the file and with it what it promised"
    )]
    Newer { path: PathBuf, found: u64 },
    #[error("failed to {step}")]
    Transaction {
        step: &'static str,
        #[source]
        source: Box<redb::Error>,
    },
    #[error("the record of order {order} is not readable")]
    Record {
        order: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("the journal's thread ended early")]
    Thread(#[source] tokio::task::JoinError),
}

/// An open journal.
#[derive(Clone)]
pub(crate) struct Store {
    database: Arc<Database>,
}

// === impl Store ===

impl Store {
    /// Opens the journal below a directory; both are created where they are missing.
    ///
    /// # Errors
    /// The file is unusable, in use, or of a newer schema.
    pub(crate) async fn open(directory: &Path) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        blocking(move || open(&directory)).await
    }

    /// All records.
    ///
    /// # Errors
    /// The file or a record cannot be read.
    pub(crate) async fn load(&self) -> Result<Vec<Record>, StoreError> {
        let database = self.database.clone();
        blocking(move || load(&database)).await
    }

    /// Makes a record durable before it returns.
    ///
    /// # Errors
    /// It is not durable; nothing that depends on it may happen.
    pub(crate) async fn put(&self, record: &Record) -> Result<(), StoreError> {
        let id = record.order.id.clone();
        let json = serde_json::to_vec(record).map_err(|source| StoreError::Record {
            order: id.to_string(),
            source,
        })?;
        let database = self.database.clone();
        blocking(move || put(&database, id.as_str(), &json)).await
    }

    /// Removes a record; none is as good.
    ///
    /// # Errors
    /// It may still be there.
    pub(crate) async fn remove(&self, order: &OrderId) -> Result<(), StoreError> {
        let id = order.clone();
        let database = self.database.clone();
        blocking(move || remove(&database, id.as_str())).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.map_err(StoreError::Thread)?
}

/// Names the step of a transaction that failed.
fn step<E: Into<redb::Error>>(step: &'static str) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Transaction {
        step,
        source: Box::new(error.into()),
    }
}

fn open(directory: &Path) -> Result<Store, StoreError> {
    create_directory(directory).map_err(|source| StoreError::Directory {
        path: directory.to_owned(),
        source,
    })?;
    let path = directory.join(FILE);
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    let database = builder.create(&path).map_err(|error| StoreError::Open {
        path: path.clone(),
        source: Box::new(error.into()),
    })?;
    // The directory may have been there before, readable for all.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|source| {
        StoreError::Directory {
            path: path.clone(),
            source,
        }
    })?;
    let transaction = database.begin_write().map_err(step("begin a write"))?;
    {
        let mut meta = transaction
            .open_table(META)
            .map_err(step("open the table of versions"))?;
        let found = meta
            .get(SCHEMA_KEY)
            .map_err(step("read the schema version"))?
            .map(|version| version.value());
        if let Some(found) = found.filter(|found| *found > SCHEMA_VERSION) {
            return Err(StoreError::Newer { path, found });
        }
        meta.insert(SCHEMA_KEY, SCHEMA_VERSION)
            .map_err(step("write the schema version"))?;
        transaction
            .open_table(ORDERS)
            .map_err(step("open the table of orders"))?;
    }
    transaction.commit().map_err(step("commit the schema"))?;
    Ok(Store {
        database: Arc::new(database),
    })
}

/// Hooks may carry credentials in their headers, so that only we may read what is in there.
fn create_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

fn load(database: &Database) -> Result<Vec<Record>, StoreError> {
    let transaction = database.begin_read().map_err(step("begin a read"))?;
    let orders = transaction
        .open_table(ORDERS)
        .map_err(step("open the table of orders"))?;
    let mut records = Vec::new();
    for entry in orders.iter().map_err(step("read the orders"))? {
        let (id, json) = entry.map_err(step("read an order"))?;
        let record = serde_json::from_slice(json.value()).map_err(|source| StoreError::Record {
            order: id.value().to_owned(),
            source,
        })?;
        records.push(record);
    }
    Ok(records)
}

fn put(database: &Database, id: &str, json: &[u8]) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(step("begin a write"))?;
    transaction
        .open_table(ORDERS)
        .map_err(step("open the table of orders"))?
        .insert(id, json)
        .map_err(step("write the record"))?;
    transaction.commit().map_err(step("commit the record"))
}

fn remove(database: &Database, id: &str) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(step("begin a write"))?;
    transaction
        .open_table(ORDERS)
        .map_err(step("open the table of orders"))?
        .remove(id)
        .map_err(step("remove the record"))?;
    transaction.commit().map_err(step("commit the removal"))
}

#[cfg(test)]
mod tests;
