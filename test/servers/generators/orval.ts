// A client that orval makes, of the kind fetch.
import { bytes, equal } from './check.ts'
import { createBooks, listBooks, updateBooks, uploadBinaryFile } from './orval/api.ts'

const uuid = 'orval'
const made = await createBooks({ uuid, title: uuid, year: 1815 })
equal('create', made.status, 201)
const page = await listBooks({ filter: `title == "${uuid}"` })
equal('list', page.status === 200 && page.data.items.map((book) => book.uuid), [uuid])
const update = () => updateBooks(uuid, { year: 1816 }, { headers: { 'If-Match': made.headers.get('ETag') ?? '' } })
const changed = await update()
equal('update', changed.status === 200 && [changed.data.title, changed.data.year], [uuid, 1816])
const refused = await update()
equal('update of what was changed', refused.status === 412 && [refused.data.type, refused.data.status], ['urn:belfry:problem:mismatch', 412])
const file = await uploadBinaryFile('Books', uuid, 'covers', 'add', bytes)
equal('upload', file.status === 201 && [file.data.size, file.data.mimetype], [4, 'application/octet-stream'])
