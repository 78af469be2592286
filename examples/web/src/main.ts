import { api, Failure, ok, type Note } from './api'
import { closeEditor, openEditor } from './editor'
import { listen } from './events'
import { byId, report } from './page'

const notes = new Map<string, Note>() // those that the page shows
const items = new Map<string, HTMLLIElement>() // and where
let cursor: string | undefined
let stop = () => {} // the stream of events

// show shows the notes, the latest first. Elements stay where they are, so that an update takes nobody's focus.
function show() {
  const list = byId('list')
  const sorted = [...notes.values()].sort((a, b) => (a.created < b.created ? 1 : -1))
  for (const [uuid, li] of items) if (!notes.has(uuid)) (li.remove(), items.delete(uuid))
  sorted.forEach((note, i) => {
    const li = items.get(note.uuid) ?? make(note.uuid)
    update(li, note)
    if (list.children[i] !== li) list.insertBefore(li, list.children[i] ?? null)
  })
  byId('more').hidden = cursor === undefined
}

function make(uuid: string): HTMLLIElement {
  const li = document.createElement('li')
  const done = document.createElement('input')
  const title = document.createElement('button')
  done.type = 'checkbox'
  done.onchange = () => attempt(() => patch(uuid, done.checked))
  title.type = 'button'
  title.onclick = () => attempt(() => openEditor(uuid))
  li.append(done, title)
  items.set(uuid, li)
  return li
}

function update(li: HTMLLIElement, note: Note) {
  const [done, title] = li.children as unknown as [HTMLInputElement, HTMLButtonElement]
  const pictures = note.pictures?.length ?? 0
  li.dataset.color = note.color ?? ''
  done.checked = note.done ?? false
  done.setAttribute('aria-label', `Done: ${note.title}`)
  title.textContent = note.title + (pictures === 0 ? '' : pictures === 1 ? ' (1 picture)' : ` (${pictures} pictures)`)
  title.className = done.checked ? 'done' : ''
}

// patch changes one field of a note, whatever the others are.
async function patch(uuid: string, done: boolean) {
  const changed = ok(await api.PATCH('/notes/{uuid}', { params: { path: { uuid } }, body: { done } }))
  notes.set(uuid, changed)
  show()
}

// load reads a page of the list, from its beginning or after the last.
async function load(next?: string) {
  const page = ok(await api.GET('/notes', { params: { query: { limit: 50, cursor: next } } }))
  if (next === undefined) notes.clear()
  for (const note of page.items) notes.set(note.uuid, note)
  cursor = page.cursor
  show()
}

// enter shows the notes of who is logged in, or the form to log in.
async function enter() {
  const me = await api.GET('/auth/me')
  const loggedIn = me.response.status !== 401
  if (loggedIn) ok(me)
  byId('entry').hidden = loggedIn
  byId('notes').hidden = byId('account').hidden = !loggedIn
  stop()
  stop = () => {}
  if (!loggedIn) return
  byId('who').textContent = me.data?.idents?.[0]?.uuid.replace(/_email$/, '') ?? me.data?.uuid ?? ''
  // The list is read once the stream has begun, so no change falls between them.
  stop = listen(
    (event) => {
      if (event.event === 'Store.Deleted') notes.delete(event.uuid)
      else if ('object' in event && event.object) notes.set(event.uuid, event.object)
      else void attempt(() => load()) // a file, or an object too large for an event
      show()
    },
    () => attempt(() => load()),
  )
}

// attempt does something and reports what went wrong. Without a session it asks for a login.
async function attempt(act: () => Promise<void>) {
  report('')
  try {
    await act()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    report(error.message)
    if (error.status === 401) {
      closeEditor()
      await enter()
    }
  }
}

byId<HTMLFormElement>('entry').onsubmit = (event) => {
  event.preventDefault()
  const form = event.currentTarget as HTMLFormElement
  const fields = new FormData(form)
  const register = (event.submitter as HTMLButtonElement | null)?.value === 'register'
  void attempt(async () => {
    ok(
      await api.POST('/auth/email', {
        params: { header: { Prefer: 'wait=5' } }, // until the user has a copy of the address
        body: { login: String(fields.get('login')), password: String(fields.get('password')), register },
      }),
    )
    form.reset()
    await enter()
  })
}

byId<HTMLFormElement>('create').onsubmit = (event) => {
  event.preventDefault()
  const form = event.currentTarget as HTMLFormElement
  void attempt(async () => {
    const made = ok(await api.POST('/notes', { body: { title: String(new FormData(form).get('title')) } }))
    form.reset()
    notes.set(made.uuid, made)
    show()
  })
}

byId('more').onclick = () => void attempt(() => load(cursor))
byId('logout').onclick = () =>
  void attempt(async () => {
    ok(await api.DELETE('/auth'))
    await enter()
  })

void attempt(enter)
