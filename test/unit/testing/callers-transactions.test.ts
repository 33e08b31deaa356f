import { describe, expect, test } from 'vitest'
import { InvalidArgumentError, LostError, UnavailableError } from '../../../src/index.js'
import { openTestBox, TestClient, type TestBox } from '../../../src/testing/index.js'
import { testCallersTransactions, type CallersPlace } from '../../support/callers-transactions.js'

function fails(text: string): never[] {
  if (text.includes('fail')) throw new Error('the test fails it')
  return []
}

describe('a client of the test', () => {
  testCallersTransactions(async (): Promise<CallersPlace> => {
    const box = await openTestBox()
    const other = await box.another()
    return {
      box,
      other,
      client: async () => new TestClient(fails),
      pass: duration => box.advance(duration),
      [Symbol.asyncDispose]: async () => {
        await other.close()
        await box.close()
      },
    }
  })

  test('a grant whose loss the box has not noticed is rejected', async () => {
    await using box = await openTestBox()
    await using other = await box.another()
    const grant = await box.mutex('key').acquire()
    box.fail('unreachable')
    await other.forceRelease('key', grant.token)
    box.restore()
    grant.assertHeld()
    const client = new TestClient()
    await client.query('begin')
    await expect(grant.fence(client)).rejects.toThrow(LostError)
  })

  test('a watch yields the value at the commit, and only then', async () => {
    await using box = await openTestBox()
    const client = new TestClient()
    const watch = box.store('s').watch('key')
    expect((await watch.next()).value).toBeUndefined()
    const next = watch.next()
    await client.query('begin')
    await box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: client })
    await box.advance('1s')
    await client.query('commit')
    expect((await next).value).toMatchObject({ value: 1 })
    await watch.return()
  })

  test('comments before a statement do not hide what it is', async () => {
    await using box = await openTestBox()
    const asked: string[] = []
    const client = new TestClient(text => {
      asked.push(text)
      return []
    })
    const grant = await box.mutex('key').acquire()
    await client.query('-- of the worker\n/* one */ begin')
    await grant.fence(client)
    await client.query('/* two\nlines */ -- and\n select')
    await client.query('/* done */ commit')
    expect(asked).toEqual(['/* two\nlines */ -- and\n select'])
    await expect(grant.fence(client)).rejects.toThrow(/transaction/)
    for (const text of ['/* a */ savepoint one', '-- b\nrollback\nto one', 'end and chain'])
      await expect(client.query(text)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await grant.release()
  })

  test('statements are answered by the test, in their order', async () => {
    const asked: unknown[] = []
    const client = new TestClient(async (text, values) => {
      await Promise.resolve()
      asked.push([text, ...values])
      return text === 'select' ? [{ paid: false }] : []
    })
    const answers = await Promise.all([
      client.query('begin'),
      client.query('update', ['42']),
      client.query({ text: 'select', values: [1] }),
      client.query('commit'),
    ])
    expect(asked).toEqual([
      ['update', '42'],
      ['select', 1],
    ])
    expect(answers[2]).toEqual({ rows: [{ paid: false }], rowCount: 1 })
  })

  test.each([
    [
      'an object around it',
      (client: TestClient) => ({ query: (t: string, v: string[]) => client.query(t, v) }),
    ],
    [
      'one with other placeholders that returns the rows',
      (client: TestClient) => ({
        query: async (t: string, v: string[]) => (await client.query(t.replace(/\$\d+/g, '?'), v)).rows,
      }),
    ],
  ])('%s works, as with an ORM', async (_, around) => {
    await using box = await openTestBox()
    const client = new TestClient()
    await client.query('start transaction isolation level serializable')
    await box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: around(client) })
    await client.query('END')
    expect((await box.store('s').get('key'))?.value).toBe(1)
  })

  test.each([
    'savepoint a',
    'rollback to savepoint a',
    'ROLLBACK TO a',
    "prepare transaction 'a'",
    'commit and chain',
  ])('%s is rejected', async text => {
    const client = new TestClient()
    await client.query('begin')
    await expect(client.query(text)).rejects.toThrow(InvalidArgumentError)
  })

  test('an object that does not reach a TestClient is rejected', async () => {
    await using box = await openTestBox()
    await using grant = await box.mutex('key').acquire()
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('TestClient') }
    await expect(grant.fence({ query: async () => [] })).rejects.toMatchObject(refused)
    await expect(grant.fence({ query: async () => [{ a: 'b' }] })).rejects.toMatchObject(refused)
    const query = () => Promise.reject(new Error('no such schema'))
    await expect(grant.fence({ query })).rejects.toMatchObject(refused)
  })

  test.each<[string, (box: TestBox, client: TestClient) => Promise<unknown>]>([
    ['fence', (box, client) => box.mutex('key').run(grant => grant.fence(client))],
    ['commit', (box, client) => box.store('s').transaction(['a'], tx => tx.put('a', 1), { in: client })],
  ])('an operation %s that fails aborts the transaction', async (operation, call) => {
    await using box = await openTestBox()
    const client = new TestClient()
    await client.query('begin')
    box.fail('replyLost', { operations: [operation as 'fence' | 'commit'], times: 1 })
    await expect(call(box, client)).rejects.toThrow(UnavailableError)
    await expect(client.query('select')).rejects.toMatchObject({ code: '25P02' })
    await client.query('rollback')
    await client.query('begin')
    await call(box, client)
    await client.query('commit')
  })
})
