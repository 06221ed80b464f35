//! What the cluster remembers: objects with versions, and what became of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

type Key = (String, String, String);

#[derive(Default)]
pub(crate) struct World {
    objects: BTreeMap<Key, Value>,
    version: u64,
    /// What happened, oldest first.
    pub(crate) events: Vec<WorldEvent>,
    /// Events up to this version are forgotten.
    pub(crate) forgotten: u64,
}

#[derive(Clone)]
pub(crate) struct WorldEvent {
    pub(crate) version: u64,
    pub(crate) kind: &'static str,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) object: Value,
}

fn key(plural: &str, namespace: &str, name: &str) -> Key {
    (plural.to_owned(), namespace.to_owned(), name.to_owned())
}

impl World {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&key(plural, namespace, name)).cloned()
    }

    pub(crate) fn all(&self, plural: &str, namespace: &str) -> Vec<Value> {
        let of = |key: &Key| key.0 == plural && (namespace.is_empty() || key.1 == namespace);
        let objects = self.objects.iter().filter(|(key, _)| of(key));
        objects.map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn put(&mut self, plural: &str, namespace: &str, mut object: Value) -> (Value, u64) {
        self.version += 1;
        let meta = &mut object["metadata"];
        let name = meta["name"].as_str().unwrap().to_owned();
        if meta["uid"].is_null() {
            meta["uid"] = uuid::Uuid::new_v4().to_string().into();
            meta["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            meta["generation"] = 1.into();
        }
        if !namespace.is_empty() {
            meta["namespace"] = namespace.into();
        }
        meta["resourceVersion"] = self.version.to_string().into();
        let key = key(plural, namespace, &name);
        let kind = match self.objects.insert(key, object.clone()) {
            None => "ADDED",
            Some(_) => "MODIFIED",
        };
        self.tell(kind, plural, namespace, object.clone());
        (object, self.version)
    }

    pub(crate) fn remove(&mut self, plural: &str, namespace: &str, name: &str) -> u64 {
        if let Some(mut object) = self.objects.remove(&key(plural, namespace, name)) {
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.tell("DELETED", plural, namespace, object);
        }
        self.version
    }

    fn tell(&mut self, kind: &'static str, plural: &str, namespace: &str, object: Value) {
        self.events.push(WorldEvent {
            version: self.version,
            kind,
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            object,
        });
    }
}

/// Whether an object is among those that were asked for.
pub(crate) fn is_selected(object: &Value, labels: &str, fields: &str) -> bool {
    let pairs = |text: &str| -> Vec<(String, String)> {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                (name.to_owned(), value.trim_start_matches('=').to_owned())
            })
            .collect()
    };
    let has_labels = pairs(labels)
        .iter()
        .all(|(name, value)| object["metadata"]["labels"][name] == **value);
    has_labels
        && pairs(fields).iter().all(|(path, value)| {
            let found = path.split('.').fold(object, |object, part| &object[part]);
            found == &json!(value)
        })
}
