import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { Calls } from '../../../../src/engines/postgres/calls.js'
import { SqlError, type Query } from '../../../../src/engines/postgres/clients/sql-client.js'
import { Lanes } from '../../../../src/engines/postgres/lanes.js'
import { statementsOf } from '../../../../src/engines/postgres/statements.js'
import { lockRequest } from '../../../support/lock-request.js'

const member = { session: 's', host: 'h', pid: 1, label: undefined }
const rowIsLocked = () => new SqlError('locked', '55P03', false, undefined)
const listener = { onNotices: () => undefined, onLost: () => undefined }
const reply = JSON.stringify([[true], [], null])

/** Resolves after everything that needs no time has happened. */
const settled = () => new Promise(resolve => setTimeout(resolve, 5))

test('an operation on a row that others waited for when the box was closed gets its reply', async () => {
  const clock = new VirtualClock()
  const replies: { readonly resolve: (text: string) => void; readonly reject: (error: SqlError) => void }[] =
    []
  const query: Query = () => new Promise((resolve, reject) => replies.push({ resolve, reject }))
  const calls = new Calls(statementsOf('signalbox'), () => member)
  const lanes = new Lanes(calls, query, clock, listener)
  const first = lanes.run({ type: 'watch', session: 's', key: 'k' })
  await settled()
  replies.shift()!.reject(rowIsLocked())
  await settled()
  clock.advance(50)
  await settled()
  const [retry] = replies.splice(0)
  const idle = lanes.idle()
  await expect(first).rejects.toMatchObject({ message: 'the box was closed' })
  await idle
  const last = lanes.run({ type: 'unwatch', session: 's', key: 'k' })
  await settled()
  replies.shift()!.reject(rowIsLocked())
  await settled()
  retry!.reject(rowIsLocked())
  await settled()
  clock.advance(50)
  await settled()
  replies.shift()!.resolve(reply)
  expect(await last).toBe(true)
})

test('an operation whose row turns out to be locked while the box is closed is rejected', async () => {
  const clock = new VirtualClock()
  let refuse!: (error: SqlError) => void
  const query: Query = () => new Promise((_, reject) => (refuse = reject))
  const lanes = new Lanes(new Calls(statementsOf('signalbox'), () => member), query, clock, listener)
  const running = lanes.run({ type: 'watch', session: 's', key: 'k' })
  await settled()
  const idle = lanes.idle()
  refuse(rowIsLocked())
  await expect(running).rejects.toMatchObject({ message: 'the box was closed' })
  await idle
})

test('an operation that was lost before its row was locked stays unclear when the box is closed', async () => {
  const clock = new VirtualClock()
  const lost = new SqlError('the connection was lost', undefined, true, undefined)
  const errors = [lost, rowIsLocked()]
  const query: Query = () => Promise.reject(errors.shift()!)
  const lanes = new Lanes(new Calls(statementsOf('signalbox'), () => member), query, clock, listener)
  const running = lanes.run({ type: 'watch', session: 's', key: 'k' })
  running.catch(() => undefined)
  await settled()
  expect(errors).toEqual([])
  await lanes.idle()
  await expect(running).rejects.toBe(lost)
})

test('an operation that was lost before its row was locked stays unclear when its time is over', async () => {
  const clock = new VirtualClock()
  const lost = new SqlError('the connection was lost', undefined, true, undefined)
  const errors = [lost]
  const query: Query = () => Promise.reject(errors.shift() ?? rowIsLocked())
  const lanes = new Lanes(new Calls(statementsOf('signalbox'), () => member), query, clock, listener)
  let error: unknown
  lanes.run({ type: 'watch', session: 's', key: 'k' }).catch((cause: unknown) => (error = cause))
  for (let passed = 0; passed <= 2000; passed += 50) {
    await settled()
    clock.advance(50)
  }
  await settled()
  expect(error).toBe(lost)
})

test('a release that was lost and then finds no grant stays unclear', async () => {
  const lost = new SqlError('the connection was lost', undefined, true, undefined)
  const request = lockRequest('s.1', [{ key: 'k', mode: 'exclusive' }])
  const errors = [lost]
  const query: Query = async () => {
    const error = errors.shift()
    if (error) throw error
    return JSON.stringify([[0], [], null])
  }
  const lanes = new Lanes(
    new Calls(statementsOf('signalbox'), () => member),
    query,
    new VirtualClock(),
    listener,
  )
  await expect(lanes.run({ type: 'release', request, number: 1 })).rejects.toBe(lost)
})

test('an operation does not overtake one that waits for the same row', async () => {
  const clock = new VirtualClock()
  const replies: { readonly resolve: (text: string) => void; readonly reject: (error: SqlError) => void }[] =
    []
  const query: Query = () => new Promise((resolve, reject) => replies.push({ resolve, reject }))
  const lanes = new Lanes(new Calls(statementsOf('signalbox'), () => member), query, clock, listener)
  const release = (id: string) =>
    lanes.run({ type: 'release', request: lockRequest(id, [{ key: 'k', mode: 'exclusive' }]), number: 1 })
  const first = release('s.1')
  await settled()
  replies.shift()!.reject(rowIsLocked())
  await settled()
  const second = release('s.2')
  await settled()
  expect(replies).toHaveLength(0)
  for (const running of [first, second]) {
    await settled()
    clock.advance(50)
    await settled()
    expect(replies).toHaveLength(1)
    replies.shift()!.resolve(reply)
    expect(await running).toBe(true)
  }
})

/**
 * Creates lanes over statements that wait for their replies.
 * @param took duration of the first statement, in milliseconds
 */
async function lanesAfter(took: number) {
  const request = {
    id: 'r',
    session: 's',
    claims: [{ key: 'k', mode: 'exclusive' }],
    label: undefined,
  } as const
  const checkIn = { type: 'checkIn', request, lease: 10_000, wait: 10_000 } as const
  const clock = new VirtualClock()
  const underway: (() => void)[] = []
  const answer = JSON.stringify([Array.from({ length: 9 }, () => ['gone']), [], null])
  const query: Query = () => new Promise(resolve => underway.push(() => resolve(answer)))
  const lanes = new Lanes(new Calls(statementsOf('signalbox'), () => member), query, clock, listener)
  const run = async (...areClaims: readonly boolean[]): Promise<number> => {
    for (const isClaim of areClaims) void lanes.run(checkIn, isClaim)
    await settled()
    return underway.length
  }
  await run(false)
  clock.advance(took)
  underway.shift()!()
  await settled()
  return { lanes, run, underway }
}

test('claims of a distant box do not wait for the reply to another operation, and travel together', async () => {
  const { run } = await lanesAfter(100)
  expect(await run(false)).toBe(1)
  expect(await run(true, true)).toBe(2)
  expect(await run(false)).toBe(2)
  expect(await run(true)).toBe(3)
  expect(await run(true)).toBe(3)
})
