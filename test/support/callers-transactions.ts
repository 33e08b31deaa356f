import { expect, test } from 'vitest'
import { InvalidArgumentError, LostError, UnavailableError, type Box, type Claim } from '../../src/index.js'
import type { SqlTransaction } from '../../src/engine/contract.js'
import { queued, soFar } from '../../packages/conformance/src/time.js'
import { failure } from './failure.js'

/** A client of the caller. Its transactions bind grants and write values. */
export type CallersClient = Extract<SqlTransaction, { query: unknown }> & {
  query(text: string): PromiseLike<unknown>
}

/** Two boxes on a place of their own, and the caller's database. */
export interface CallersPlace extends AsyncDisposable {
  readonly box: Box
  readonly other: Box
  /** Returns a client that has begun no transaction. */
  client(): Promise<CallersClient>
  /** Waits for this many milliseconds of the boxes' time. */
  pass(duration: number): Promise<void>
}

/** The lease of a grant that is to expire, in milliseconds. */
const SHORT = 1000

/** Defines the tests of callers' transactions for a kind of place. */
export function testCallersTransactions(open: () => Promise<CallersPlace>): void {
  /** Returns a client that has begun a transaction. */
  async function begun(place: CallersPlace): Promise<CallersClient> {
    const client = await place.client()
    await client.query('begin')
    return client
  }

  test.each(['commit', 'rollback'])(
    'the next holder waits for the end of the transaction by %s, not for the release',
    async end => {
      await using place = await open()
      const { box, other } = place
      const client = await begun(place)
      const grant = await box.mutex('key').acquire()
      await grant.fence(client)
      await grant.release()
      expect(await other.mutex('key').tryAcquire()).toBeUndefined()
      const next = other.mutex('key').acquire({ wait: '10s' })
      await queued(other, 'key', 1)
      const local = box.mutex('key').acquire({ wait: '10s' })
      await place.pass(300)
      expect(await soFar(next)).toBe('pending')
      expect(await soFar(local)).toBe('pending')
      await client.query(end)
      await (await next).release()
      await (await local).release()
    },
  )

  test('after the lease has expired, the key stays locked until the transaction ends, and waiters learn of it', async () => {
    await using place = await open()
    const { other } = place
    const client = await begun(place)
    const grant = await place.box.mutex('key').acquire({ lease: SHORT, renew: false })
    await grant.fence(client)
    await place.pass(SHORT + 300)
    expect(() => grant.assertHeld()).toThrow(LostError)
    // No request can get the key, so it has a holder, also while none waits.
    expect(await other.mutex('key').isLocked()).toBe(true)
    const label = expect.stringContaining('open transaction') as string
    const refused = other
      .mutex('key')
      .acquire({ wait: 500 })
      .catch((error: unknown) => error)
    await place.pass(600)
    expect(await refused).toMatchObject({ code: 'TIMED_OUT', holder: { label } })
    const next = other.mutex('key').acquire({ wait: '10s' })
    await queued(other, 'key', 1)
    for (const prefix of ['key', 'ke'])
      for await (const { key, holders, waiters } of other.inspect(prefix)) {
        expect([key, waiters.length]).toEqual(['key', 1])
        expect(holders).toEqual([expect.objectContaining({ label })])
      }
    expect(await soFar(next)).toBe('pending')
    await client.query('commit')
    await (await next).release()
    expect(await other.mutex('key').isLocked()).toBe(false)
  })

  test('keys of one request are bound together, and others stay free', async () => {
    await using place = await open()
    const { box, other } = place
    const client = await begun(place)
    const grant = await box.mutex('a', 'b').acquire()
    await grant.fence(client)
    await grant.release()
    expect(await other.mutex('b').tryAcquire()).toBeUndefined()
    expect(await other.mutex('a').tryAcquire()).toBeUndefined()
    await (await other.mutex('c').acquire()).release()
    await client.query('commit')
    await (await other.mutex('a', 'b').acquire({ wait: '5s' })).release()
  })

  test.each([
    ['a', 'b'],
    ['b', 'a'],
  ])('the exclusive key %s of a grant is bound, and its permits of %s are not', async (key, permits) => {
    await using place = await open()
    const { box, other } = place
    const client = await begun(place)
    const claims: Claim[] = [
      { key, mode: 'exclusive' },
      { key: permits, mode: 'permits', permits: 1, max: 2 },
    ]
    const grant = await box.lock(...claims).acquire()
    await grant.fence(client)
    const second = await other.semaphore(permits, { max: 2 }).tryAcquire()
    expect(second).toBeDefined()
    await second!.release()
    await grant.release()
    expect(await other.mutex(key).tryAcquire()).toBeUndefined()
    const both = await other.semaphore(permits, { max: 2 }).tryAcquire({ permits: 2 })
    expect(both).toBeDefined()
    await both!.release()
    await client.query('commit')
    await (await other.lock({ key, mode: 'exclusive' }).acquire({ wait: '5s' })).release()
  })

  test('a grant without an exclusive key is rejected', async () => {
    await using place = await open()
    const permit = await place.box.semaphore('permits', { max: 2 }).acquire()
    await expect(permit.fence(await begun(place))).rejects.toThrow(InvalidArgumentError)
  })

  test('a lost grant is rejected, and the transaction can be used', async () => {
    await using place = await open()
    const { box, other } = place
    const grant = await box.mutex('key').acquire()
    const permits: Claim = { key: 'a', mode: 'permits', permits: 1, max: 2 }
    const some = await box.lock(permits, { key: 'b', mode: 'exclusive' }).acquire()
    expect(await other.forceRelease('key', grant.token)).toBe(true)
    expect(await other.forceRelease('b', some.token)).toBe(true)
    const client = await begun(place)
    await expect(grant.fence(client)).rejects.toThrow(LostError)
    await expect(some.fence(client)).rejects.toThrow(LostError)
    await using held = await box.mutex('another').acquire()
    await held.fence(client)
    await client.query('commit')
  })

  test('a client without a transaction, or with an aborted one, and a pool are rejected', async () => {
    await using place = await open()
    const store = place.box.store('s')
    const client = await place.client()
    const refused = (why: string) => failure('INVALID_ARGUMENT', why)
    const write = (to: CallersClient) => store.transaction(['key'], tx => tx.put('key', 1), { in: to })
    await using grant = await place.box.mutex('key').acquire()
    await expect(grant.fence(client)).rejects.toMatchObject(refused('has begun none'))
    await expect(write(client)).rejects.toMatchObject(refused('has begun none'))
    await client.query('begin')
    await expect(client.query('select fail')).rejects.toThrow()
    await expect(grant.fence(client)).rejects.toMatchObject(refused('is aborted'))
    await expect(write(client)).rejects.toMatchObject(refused('is aborted'))
    const pool = Object.assign(Object.create(client) as CallersClient, { totalCount: 1 as never })
    await expect(grant.fence(pool)).rejects.toMatchObject(refused('a pool'))
    grant.assertHeld()
    expect(await store.get('key')).toBeUndefined()
    await client.query('rollback')
  })

  test('values are written when the transaction commits, and their IDs are recorded', async () => {
    await using place = await open()
    const { box, other } = place
    const store = box.store('accounts')
    await store.put('from', 10)
    await store.put('gone', 1)
    const client = await place.client()
    const move = () =>
      store.transaction(
        ['from', 'to', 'gone'],
        tx => {
          tx.put('from', tx.get<number>('from')! - 3)
          tx.put('to', (tx.get<number>('to') ?? 0) + 3)
          tx.delete('gone')
        },
        { in: client, id: 'move' },
      )
    const values = async (): Promise<unknown[]> => {
      const entries = ['from', 'to', 'gone'].map(key => other.store('accounts').get(key))
      return (await Promise.all(entries)).map(entry => entry?.value)
    }
    await client.query('begin')
    await move()
    expect(await values()).toEqual([10, undefined, 1])
    expect(await other.mutex('accounts/from').tryAcquire()).toBeUndefined()
    await client.query('rollback')
    expect(await values()).toEqual([10, undefined, 1])
    await client.query('begin')
    expect(await move()).toMatchObject({ applied: true })
    await client.query('commit')
    expect(await values()).toEqual([7, 3, undefined])
    await client.query('begin')
    expect(await move()).toMatchObject({ applied: false })
    await client.query('commit')
    expect(await values()).toEqual([7, 3, undefined])
  })

  test('an aborted transaction writes nothing, also by commit', async () => {
    await using place = await open()
    const store = place.box.store('s')
    const client = await begun(place)
    await store.transaction(['key'], tx => tx.put('key', 1), { in: client })
    await expect(client.query('select fail')).rejects.toThrow()
    await client.query('commit')
    expect(await store.get('key')).toBeUndefined()
    await store.transaction(['key'], tx => tx.put('key', 2))
  })

  test('values are written although the box was closed before the commit', async () => {
    await using place = await open()
    const client = await begun(place)
    await place.box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: client })
    await place.box.close()
    expect(await place.other.store('s').get('key')).toBeUndefined()
    await client.query('commit')
    expect((await place.other.store('s').get('key'))?.value).toBe(1)
  })

  test('a value that was read without its lock and changed meanwhile is a conflict', async () => {
    await using place = await open()
    const { box, other } = place
    const client = await begun(place)
    const writing = box.store('s').transaction(
      ['key'],
      async tx => {
        await other.store('s').put('key', 1)
        tx.put('key', 2)
      },
      { in: client },
    )
    await expect(writing).rejects.toMatchObject({ code: 'CONFLICT' })
    await client.query('commit')
    expect((await box.store('s').get('key'))?.value).toBe(1)
  })

  test('another transaction on the same keys waits, also one in the same client', async () => {
    await using place = await open()
    const { box, other } = place
    const client = await begun(place)
    const add = (to: Box, key: string, within?: CallersClient, wait = 10_000) =>
      to
        .store('s')
        .transaction([key], tx => tx.put(key, (tx.get<number>(key) ?? 0) + 1), { in: within, wait })
    await add(box, 'key', client)
    await add(box, 'free', client)
    const second = add(box, 'key', client, 500)
    const others = add(other, 'key', undefined, 500)
    const refused = Promise.allSettled([second, others])
    await place.pass(600)
    const timedOut = { status: 'rejected', reason: { code: 'TIMED_OUT' } }
    expect(await refused).toMatchObject([timedOut, timedOut])
    await client.query('commit')
    await add(other, 'key')
    expect((await box.store('s').get('key'))?.value).toBe(2)
  })

  test('transactions in one client may read the same value to find their keys', async () => {
    await using place = await open()
    const store = place.box.store('s')
    await store.put('prefix', 'a')
    const client = await begun(place)
    const write = (key: string) =>
      store.transaction(
        async read => [`${await read<string>('prefix')}${key}`],
        tx => tx.put(`a${key}`, key),
        { in: client },
      )
    await write('1')
    await write('2')
    await client.query('commit')
    expect((await store.get('a1'))?.value).toBe('1')
    expect((await store.get('a2'))?.value).toBe('2')
  })

  test('a write without the lock waits for the transaction for two seconds', async () => {
    await using place = await open()
    const { box, other } = place
    const client = await begun(place)
    await box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: client })
    const refused = other
      .store('s')
      .put('key', 2)
      .catch((error: unknown) => error)
    await place.pass(2500)
    expect(await refused).toBeInstanceOf(UnavailableError)
    const written = other.store('s').put('key', 3)
    await place.pass(100)
    expect(await soFar(written)).toBe('pending')
    await client.query('commit')
    await written
    expect((await box.store('s').get('key'))?.value).toBe(3)
  })
}
