import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  UnavailableError,
  type Grant,
} from '../../../src/index.js'
import { openTestBox, type Fault, type TestBox } from '../../../src/testing/index.js'

let box: TestBox
let other: TestBox

beforeEach(async () => {
  box = await openTestBox()
  other = await box.another()
})

afterEach(async () => {
  await box.close()
  await other.close()
})

test('unreachable: calls reject, grants are lost, and another box gets the lock when the lease has expired', async () => {
  const grant = await box.mutex('key').acquire({ lease: '10s' })
  box.fail('unreachable')
  await expect(box.mutex('another key').acquire()).rejects.toThrow(UnavailableError)
  await expect(box.store('values').get('key')).rejects.toThrow(UnavailableError)
  await expect(box.limiter('api', { limit: 1, per: '1s' }).acquire()).rejects.toThrow(UnavailableError)
  expect(box.state.status).toBe('reconnecting')
  const next = other.mutex('key').acquire()
  await box.advance('9s')
  grant.assertHeld()
  await box.advance('1s')
  expect(() => grant.assertHeld()).toThrow(LostError)
  await box.advance('1s')
  await next
  box.restore()
  await box.mutex('another key').acquire()
  expect(box.state.status).toBe('ready')
})

test('a box that is reconnecting is ready once it is reachable, though only its state is read', async () => {
  box.fail('unreachable')
  await expect(box.ping()).rejects.toThrow(UnavailableError)
  box.restore()
  await vi.waitFor(() => expect(box.state.status).toBe('ready'))
})

test.each<[Fault, typeof UnavailableError | typeof IndeterminateError, unknown]>([
  ['unreachable', UnavailableError, undefined],
  ['requestLost', IndeterminateError, undefined],
  ['replyLost', IndeterminateError, 1],
])(
  '%s: a write rejects with the error of a server, and is made only if its reply is lost',
  async (fault, kind, value) => {
    box.fail(fault, { operations: ['commit'], times: 1 })
    await expect(box.store('values').put('key', 1)).rejects.toThrow(kind)
    expect((await box.store('values').get('key'))?.value).toBe(value)
    await box.store('values').put('key', 2)
    expect((await other.store('values').get('key'))?.value).toBe(2)
  },
)

test.each<Fault>(['requestLost', 'replyLost'])('%s: the box cleans up after an acquire', async fault => {
  box.fail(fault, { operations: ['enqueue'], times: 1 })
  await expect(box.mutex('key').acquire()).rejects.toThrow(IndeterminateError)
  await box.advance(0)
  expect(await other.mutex('key').tryAcquire()).toBeDefined()
})

test('renewals alone fail, so that a grant is lost', async () => {
  const grant = await box.mutex('key').acquire({ lease: '10s' })
  box.fail('unreachable', { operations: ['renew'] })
  await box.mutex('another key').run(() => undefined)
  await box.advance('10s')
  expect(() => grant.assertHeld()).toThrow(LostError)
})

test('an unreachable box gets no hints, and reads again what it watches afterwards', async () => {
  const values: unknown[] = []
  const over = new AbortController()
  const following = (async () => {
    for await (const entry of box.store('values').watch('key', over.signal)) values.push(entry?.value)
  })().catch(() => undefined)
  await box.advance(0)
  box.fail('unreachable')
  await other.store('values').put('key', 1)
  await box.advance(0)
  const before = [...values]
  box.restore()
  await box.advance('2s')
  expect({ before, after: values.at(-1) }).toEqual({ before: [undefined], after: 1 })
  over.abort()
  await following
})

test('a grant that is lost on purpose is lost at once, wherever it is held', async () => {
  const lost = async (holder: TestBox): Promise<void> => {
    let grant: Grant | undefined
    const run = holder.mutex('key').run(async held => {
      grant = held
      await new Promise(resolve => held.signal.addEventListener('abort', resolve))
    })
    const refused = expect(run).rejects.toThrow(LostError)
    await box.advance(0)
    box.lose('key')
    expect(() => grant!.assertHeld()).toThrow(LostError)
    await refused
    expect(await other.mutex('key').run(() => 'next')).toBe('next')
  }
  await lost(box)
  await lost(other)
})

test('nobody can lose a key that nobody holds', async () => {
  expect(() => box.lose('key')).toThrow(InvalidArgumentError)
  await box.mutex('key').run(() => undefined)
  expect(() => box.lose('key')).toThrow('key must be held by a box of the test, not "key"')
})

test('arguments are checked', async () => {
  const fail = box.fail as (...argv: unknown[]) => void
  expect(() => fail('gone')).toThrow('fault must be one of unreachable, requestLost, replyLost, not "gone"')
  expect(() => fail('replyLost', { operations: ['lock'] })).toThrow(
    /operations must be a list with some of enqueue, .*, not \["lock"\]/,
  )
  expect(() => fail('replyLost', { operations: [] })).toThrow(/operations must be a list with/)
  expect(() => fail('replyLost', { operations: 'renew' })).toThrow(/operations must be a list with/)
  expect(() => fail('replyLost', { operations: [undefined] })).toThrow(/operations must be a list with/)
  expect(() => fail('replyLost', { times: 0 })).toThrow('times must be a positive integer, not 0')
  expect(() => fail('replyLost', { after: 1 })).toThrow(/unknown option "after"/)
  await expect(box.advance(-1)).rejects.toThrow(InvalidArgumentError)
  await expect(box.advance('soon' as '1s')).rejects.toThrow(InvalidArgumentError)
  await expect(openTestBox({ wait: '1s' } as object)).rejects.toThrow(InvalidArgumentError)
})

test('calls of advance that overlap add up', async () => {
  const grant = await box.mutex('key').acquire({ lease: '1h', renew: false })
  await Promise.all([box.advance('10m'), other.advance('10m')])
  expect(grant.expiresIn()).toBe(40 * 60_000)
})
