//! What is asked of a table by who would have made it.

use arrow_schema::{Field as ArrowField, Schema as ArrowSchema, SchemaRef};

use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::Schema;
use crate::format::table::layout::{self, NamingScheme};
use crate::table::Append;
use crate::table::handle::Table;

/// What the first difference between two schemas is, for people.
fn difference(given: &ArrowSchema, own: &ArrowSchema) -> String {
    let show = |field: &ArrowField| {
        let nulls = if field.is_nullable() { "" } else { " not null" };
        format!("\"{}\" {}{nulls}", field.name(), field.data_type())
    };
    let pairs = given.fields().iter().zip(own.fields());
    let Some((given_field, own_field)) = pairs.into_iter().find(|(given, own)| given != own) else {
        let (given, own) = (given.fields().len(), own.fields().len());
        return if given == own {
            "metadata differ".to_owned()
        } else {
            format!("{given} columns, the table has {own}")
        };
    };
    let (given, own) = (show(given_field), show(own_field));
    match given == own {
        true => format!("metadata of column \"{}\" differ", given_field.name()),
        false => format!("column {given}, in the table {own}"),
    }
}

impl Table {
    /// Succeeds when a table made of `schema` would have this one's columns: names, order, types, nullability and metadata.
    ///
    /// # Errors
    /// `Schema`, also for a schema that no table can have.
    pub async fn expect_schema(&self, schema: &ArrowSchema) -> Result<()> {
        let (given, own) = (Schema::from_arrow(schema)?.to_arrow(), self.schema().await?);
        if given == *own {
            return Ok(());
        }
        let difference = difference(&given, &own);
        let message = format!("Schema Error: Provided schema does not match existing table schema: {difference}");
        Err(Error::schema(message))
    }

    /// As [`Table::overwrite_with`]; the schema and the data format that are not given stay the table's.
    ///
    /// # Errors
    /// As [`Table::overwrite_with`].
    pub async fn overwrite_as(&self, schema: Option<SchemaRef>, format: Option<FileVersion>) -> Result<Append> {
        let standing = self.standing()?;
        let schema = schema.unwrap_or_else(|| SchemaRef::new(standing.manifest.schema.to_arrow()));
        let format = match format {
            Some(format) => format,
            None => FileVersion::parse(&standing.manifest.data_format)?,
        };
        self.overwrite_with(&schema, format).await
    }

    /// Whether the manifests' names sort from the newest to the oldest.
    pub fn uses_v2_manifest_paths(&self) -> Result<bool> {
        let standing = self.standing()?;
        let parsed = layout::parse_manifest_name(standing.path.file_name());
        Ok(parsed.is_none_or(|(_, scheme)| scheme == NamingScheme::V2))
    }
}
