//! ClientHellos of every make.

/// A hello that can be taken apart and put together wrongly.
#[derive(Clone)]
pub(super) struct Hello {
    pub(super) version: [u8; 2],
    pub(super) suites: Vec<u8>,
    pub(super) extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    pub(super) fn naming(names: &[&[u8]]) -> Self {
        Self {
            version: [3, 3],
            suites: vec![0x13, 0x01, 0xc0, 0x2f],
            extensions: vec![(0, server_names(names))],
        }
    }

    pub(super) fn with(mut self, kind: u16, data: &[u8]) -> Self {
        self.extensions.push((kind, data.to_vec()));
        self
    }

    pub(super) fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_vec();
        body.extend([7; 32]);
        body.push(0);
        body.extend(counted(&self.suites));
        body.extend([1, 0]);
        let extensions = self.extensions.iter().flat_map(|(kind, data)| {
            let mut extension = kind.to_be_bytes().to_vec();
            extension.extend(counted(data));
            extension
        });
        body.extend(counted(&extensions.collect::<Vec<u8>>()));
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1, length[1], length[2], length[3]][..], &body].concat()
    }

    /// In records of so many bytes each.
    pub(super) fn records(&self, each: usize) -> Vec<u8> {
        let message = self.message();
        let records = message.chunks(each).flat_map(|part| {
            let mut record = vec![22, 3, 1];
            record.extend(counted(part));
            record
        });
        records.collect()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.records(16_000)
    }
}

fn server_names(names: &[&[u8]]) -> Vec<u8> {
    let list = names.iter().flat_map(|name| {
        let mut entry = vec![0];
        entry.extend(counted(name));
        entry
    });
    counted(&list.collect::<Vec<u8>>())
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    out.extend(bytes);
    out
}
