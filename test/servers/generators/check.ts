// What each program of this folder checks.
export function equal(what: string, got: unknown, want: unknown) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}

export const bytes = new Blob([new Uint8Array([137, 80, 78, 71])], { type: 'image/png' })

export const url = process.env.BELFRY ?? ''
declare const process: { env: Record<string, string | undefined> }
