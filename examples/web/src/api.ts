// The API of belfry, with the types that openapi-typescript makes of /openapi.json.
import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export type Note = components['schemas']['Notes']
export type NotePatch = components['schemas']['NotesPatch']
export type NoteEvent = components['schemas']['NotesEvent']
export type Problem = components['schemas']['Problem']

// The browser sends the session's cookie, which no script can read.
export const api = createClient<paths>({ baseUrl: location.origin })

// Failure is a request that belfry refused, or could not answer.
export class Failure extends Error {
  constructor(readonly status: number, readonly problem?: Problem) {
    super(problem?.detail ?? problem?.title ?? `belfry replied with status ${status}`)
  }

  // What is wrong with a field of the object, for instance title.
  of(field: string): string | undefined {
    return this.problem?.errors?.find((e) => e.pointer === `/${field}`)?.message
  }
}

// ok returns the data of a reply that succeeded, and throws a Failure otherwise. Text is the reply to a stream of objects, which this application
// does not send.
export function ok<T>(reply: { data?: T; error?: unknown; response: Response }): Exclude<T, string> {
  if (!reply.response.ok) {
    // A proxy in between may reply with something else than a problem.
    const problem = reply.error as Problem | undefined
    throw new Failure(reply.response.status, problem && typeof problem === 'object' ? problem : undefined)
  }
  return reply.data as Exclude<T, string>
}
