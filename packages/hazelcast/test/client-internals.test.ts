import { expect, test } from 'vitest'
import { closeHalfDead, repeatOnce } from '../src/client-internals.js'

/** Maximum time for which the package waits for a reply, in milliseconds. */
const TIMEOUT = 120_000
const SENT = 1_000_000

/** Returns the parts of a client that has sent one request, and the number of times that its connection was closed. */
function clientWith({
  lastRead = SENT,
  isRetryable = true,
  deadline = SENT + TIMEOUT,
  started = 0,
  pendingResponseMessage = undefined as unknown,
}) {
  const closed: string[] = []
  const sendConnection = {
    getStartTime: () => started,
    getLastReadTimeMillis: () => lastRead,
    close: (why: string) => closed.push(why),
  }
  const request = { isRetryable: () => isRetryable }
  const invocation = { sendConnection, deadline, request, pendingResponseMessage }
  const invocationService = { pending: new Map([[1, invocation]]), invocationTimeoutMillis: TIMEOUT }
  return { client: { invocationService } as never, closed, pending: invocationService.pending }
}

test('a connection that delivers data long after a request, but no reply to it, is closed', () => {
  const { client, closed } = clientWith({ lastRead: SENT + 3001 })
  closeHalfDead(client)
  expect(closed).toHaveLength(0)
  closeHalfDead(client)
  expect(closed).toHaveLength(1)
})

test('the connection over which the package sends a request again gets time to deliver the reply', () => {
  const old = clientWith({ lastRead: SENT + 5000 })
  closeHalfDead(old.client)
  closeHalfDead(old.client)
  const next = clientWith({ lastRead: SENT + 7000 })
  const again = Object.assign(old.pending.get(1)!, next.pending.get(1)!)
  next.pending.set(1, again)
  closeHalfDead(next.client)
  expect(next.closed).toHaveLength(0)
  closeHalfDead(next.client)
  expect(next.closed).toHaveLength(1)
})

test.each([
  ['is silent', { lastRead: SENT + 2000 }],
  ['waits for a lock', { lastRead: SENT + 60_000, deadline: SENT + Number.MAX_SAFE_INTEGER }],
  ['waits for a change', { lastRead: SENT + 60_000, isRetryable: false }],
  [
    'has delivered the reply, but not all copies are made',
    { lastRead: SENT + 60_000, pendingResponseMessage: {} },
  ],
  ['is newer than the request', { lastRead: SENT + 6000, started: SENT + 4000 }],
])('a connection that %s stays open', (_, request) => {
  const { client, closed } = clientWith(request)
  closeHalfDead(client)
  closeHalfDead(client)
  expect(closed).toHaveLength(0)
})

test('a client of a version without these parts is left alone', () => {
  expect(() => closeHalfDead({} as never)).not.toThrow()
  expect(repeatOnce({} as never, () => undefined)).toBe(false)
})

test('a request whose connection was lost counts as sent on no connection until it is sent again', () => {
  const { client, pending } = clientWith({})
  const repeated: unknown[] = []
  const { invocationService } = client as { invocationService: Record<string, unknown> }
  invocationService.notifyError = (invocation: { sendConnection?: object }) =>
    repeated.push(invocation.sendConnection)
  let failed = 0
  expect(repeatOnce(client, () => failed++)).toBe(true)
  const notifyError = invocationService.notifyError as (invocation: unknown, error: Error) => void
  notifyError(pending.get(1), new Error('the connection was lost'))
  expect(repeated).toEqual([undefined])
  expect(failed).toBe(1)
})
