// Live updates: one stream of events, which continues after the last event it received.
import type { NoteEvent } from './api'

const names = ['Store.Saved', 'Store.Updated', 'Store.Deleted', 'Binary.Uploaded', 'Binary.Deleted'] as const

// listen calls read once every later event will come, and again when events may have been missed. It calls onEvent for
// each event of Notes; those that come while the objects are read wait. It returns what ends it.
export function listen(onEvent: (event: NoteEvent) => void, read: () => Promise<void>): () => void {
  let last: string | undefined
  let turn = Promise.resolve() // what comes has its turn after what came before
  let source: EventSource | undefined
  let timer: number | undefined
  const open = () => {
    const query = new URLSearchParams({ store: 'Notes' })
    if (last !== undefined) query.set('lastEventId', last)
    const stream = (source = new EventSource(`/events?${query}`))
    const on = (name: string, act: (data: string, isFirst: boolean) => void | Promise<void>) =>
      stream.addEventListener(name, (message: MessageEvent<string>) => {
        const isFirst = last === undefined
        last = message.lastEventId || last
        turn = turn.then(() => act(message.data, isFirst))
      })
    for (const name of names) on(name, (data) => onEvent(JSON.parse(data) as NoteEvent))
    on('ready', (_, isFirst) => (isFirst ? read() : undefined))
    on('reset', read)
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
