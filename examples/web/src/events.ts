// Live updates: one stream of events, which continues after the last event it received.
import type { NoteEvent } from './api'

const names = ['Store.Saved', 'Store.Updated', 'Store.Deleted', 'Binary.Uploaded', 'Binary.Deleted'] as const

// listen calls onEvent for each event of Notes, and onGap when events may have been missed: read
// the objects again then. It returns what ends it.
export function listen(onEvent: (event: NoteEvent) => void, onGap: () => void): () => void {
  let last: string | undefined
  let source: EventSource | undefined
  let timer: number | undefined
  const open = () => {
    const query = new URLSearchParams({ store: 'Notes' })
    if (last !== undefined) query.set('lastEventId', last)
    const stream = (source = new EventSource(`/events?${query}`))
    const on = (name: string, act: (data: string) => void) =>
      stream.addEventListener(name, (message: MessageEvent<string>) => {
        last = message.lastEventId
        act(message.data)
      })
    for (const name of names) on(name, (data) => onEvent(JSON.parse(data) as NoteEvent))
    on('ready', () => {})
    on('reset', onGap)
    on('dropped', () => {})
    // A browser reconnects by itself after some errors only. Node can report an error twice.
    stream.onerror = () => {
      stream.onerror = null
      stream.close()
      timer = window.setTimeout(open, 1000 + 2000 * Math.random())
    }
  }
  open()
  return () => {
    clearTimeout(timer)
    source?.close()
  }
}
