// A client of openapi-fetch with the types of openapi-typescript.
import createClient from 'openapi-fetch'
import { bytes, equal, url } from './check.ts'
import type { components, paths } from './fetch/schema.ts'

const api = createClient<paths>({ baseUrl: url })
const uuid = 'fetch'
const input: components['schemas']['BooksInput'] = { uuid, title: uuid, year: 1815 } // margin has a default, and need not be there
const made = await api.POST('/books', { body: input })
equal('create', made.response.status, 201)
const page = await api.GET('/books', { params: { query: { filter: `title == "${uuid}"`, explain: false } } })
equal('list', page.data?.items.map((book) => book.uuid), [uuid])
const update = () => api.PUT('/books/{uuid}', {
  params: { path: { uuid }, header: { 'If-Match': made.response.headers.get('ETag') ?? '' } }, body: { year: 1816 },
})
const changed = await update()
equal('update', [changed.data?.title, changed.data?.year], [uuid, 1816])
const refused = await update()
equal('update of what was changed', [refused.error?.type, refused.error?.status], ['urn:belfry:problem:mismatch', 412])
const batch = await api.POST('/batch', { body: { operations: [{ method: 'PATCH', path: '/books/' + uuid, body: { year: 1817, title: uuid } }] } })
equal('batch', batch.data?.results.map((result) => [result.status, result.body?.year]), [[200, 1817]])
const some = await api.GET('/books/{uuid}', { params: { path: { uuid }, query: { fields: 'year' } } })
const partial = some.data as components['schemas']['BooksPartial'] | undefined
equal('some fields', [partial?.year, partial?.title], [1817, undefined])
const file = await api.PUT('/binary/upload/{store}/{uuid}/{property}/{index}', {
  params: { path: { store: 'Books', uuid, property: 'covers', index: 'add' } },
  body: bytes, bodySerializer: (body: unknown) => body as Blob, headers: { 'Content-Type': 'image/png' },
})
equal('upload', [file.data?.size, file.data?.mimetype], [4, 'image/png'])
