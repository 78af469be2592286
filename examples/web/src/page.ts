// byId returns an element of index.html.
export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`there is no element ${id}`)
  return found as T
}

// report shows a message, or none.
export function report(text: string) {
  const message = byId('message')
  message.textContent = text
  message.hidden = text === ''
}
