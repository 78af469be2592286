// The editor writes under If-Match: nothing that was changed elsewhere meanwhile is overwritten unseen.
import { api, Failure, ok, type Note, type NotePatch } from './api'
import { byId } from './page'

const dialog = byId<HTMLDialogElement>('editor')
const form = byId<HTMLFormElement>('edit')
const title = byId<HTMLInputElement>('edit-title')
const text = byId<HTMLTextAreaElement>('edit-text')
const color = byId<HTMLSelectElement>('edit-color')
const picture = byId<HTMLInputElement>('picture')

let uuid = ''
let tag = '' // the ETag of the state that is edited, or that the user has seen as a conflict

// read reads the note and its ETag.
async function read(): Promise<Note> {
  const reply = await api.GET('/notes/{uuid}', { params: { path: { uuid } } })
  const note = ok(reply)
  tag = reply.response.headers.get('ETag') ?? ''
  showPictures(note)
  return note
}

function fill(note: Note) {
  title.value = note.title
  text.value = note.text ?? ''
  color.value = note.color ?? ''
  byId('conflict').hidden = true
}

function showPictures(note: Note) {
  byId('pictures').replaceChildren(
    ...(note.pictures ?? []).map((record, index) => {
      const image = document.createElement('img')
      image.alt = record.name
      image.src = `/binary/Notes/${encodeURIComponent(note.uuid)}/pictures/${index}?${record.hash}`
      return image
    }),
  )
}

export async function openEditor(of: string) {
  uuid = of
  fill(await read())
  dialog.showModal()
}

export function closeEditor() {
  dialog.close()
}

// save changes the fields if the note is still as it was read, and shows what others have written
// otherwise. A further save then replaces that.
async function save() {
  const body: NotePatch = { title: title.value, text: text.value, color: (color.value || null) as NotePatch['color'] }
  const reply = await api.PATCH('/notes/{uuid}', { params: { path: { uuid }, header: { 'If-Match': tag } }, body })
  if (reply.response.status === 412) {
    const theirs = await read()
    byId('their-title').textContent = theirs.title
    byId('their-text').textContent = theirs.text ?? ''
    byId('theirs').onclick = () => fill(theirs)
    byId('conflict').hidden = false
    return
  }
  ok(reply)
  closeEditor()
}

// upload sends the bytes of a file as they are. The API explains a file that is refused.
async function upload(file: File) {
  const path = { store: 'Notes', uuid, property: 'pictures', index: 'add' } as const
  const reply = await api.PUT('/binary/upload/{store}/{uuid}/{property}/{index}', {
    params: { path, header: { 'X-Filename': encodeURIComponent(file.name) } },
    body: file,
    bodySerializer: (body: unknown) => body as File,
    headers: { 'Content-Type': file.type || 'application/octet-stream' },
  })
  ok(reply)
  picture.value = ''
  await read() // the upload has changed the note: a save needs its new ETag
}

// attempt reports what went wrong at the field that it is about.
async function attempt(act: () => Promise<void>) {
  title.setCustomValidity('')
  try {
    await act()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    title.setCustomValidity(error.of('title') ?? error.message)
    title.reportValidity()
  }
}

form.onsubmit = (event) => {
  event.preventDefault()
  void attempt(save)
}
title.oninput = () => title.setCustomValidity('')
picture.onchange = () => {
  const file = picture.files?.[0]
  if (file) void attempt(() => upload(file))
}
byId('close').onclick = closeEditor
byId('delete').onclick = () =>
  void attempt(async () => {
    ok(await api.DELETE('/notes/{uuid}', { params: { path: { uuid }, header: { 'If-Match': tag } } }))
    closeEditor()
  })
