// A client that hey-api makes.
import { bytes, equal, url } from './check.ts'
import { client } from './hey/client.gen.ts'
import { createBooks, listBooks, updateBooks, uploadBinaryFile } from './hey/sdk.gen.ts'

client.setConfig({ baseUrl: url })
const uuid = 'hey'
const made = await createBooks({ body: { uuid, title: uuid, year: 1815 } })
equal('create', made.response?.status, 201)
const page = await listBooks({ query: { filter: `title == "${uuid}"` } })
equal('list', page.data?.items.map((book) => book.uuid), [uuid])
const update = () => updateBooks({ path: { uuid }, headers: { 'If-Match': made.response?.headers.get('ETag') ?? '' }, body: { year: 1816 } })
const changed = await update()
equal('update', [changed.data?.title, changed.data?.year], [uuid, 1816])
const refused = await update()
equal('update of what was changed', [refused.error?.type, refused.error?.status], ['urn:belfry:problem:mismatch', 412])
const file = await uploadBinaryFile({ path: { store: 'Books', uuid, property: 'covers', index: 'add' }, body: bytes })
equal('upload', [file.data?.size, file.data?.mimetype], [4, 'application/octet-stream'])
