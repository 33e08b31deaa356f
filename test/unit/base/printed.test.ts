import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { open, type Box } from '../../../src/index.js'

test.each<[of: string, make: (box: Box) => unknown, shows: Record<string, unknown>]>([
  ['a box', box => box, { engine: 'memory:' }],
  ['a mutex', box => box.mutex('k'), { kind: 'mutex', claims: [{ key: 'k', mode: 'exclusive' }] }],
  ['a semaphore', box => box.semaphore('k', { max: 2 }), { kind: 'semaphore', key: 'k', max: 2 }],
  ['a store', box => box.store('s'), { name: 's' }],
  ['a limiter', box => box.limiter('api', { limit: 1, per: '1s' }), { name: 'api' }],
  [
    'a key of a limiter',
    box => box.limiter('api', { limit: 1, per: '1s' }).key('me'),
    { name: 'api', key: 'me' },
  ],
  ['an election', box => box.election('e'), { name: 'e' }],
])('%s prints as what it is', async (_, make, shows) => {
  await using box = await open('memory:')
  const object = await make(box)
  expect(JSON.parse(JSON.stringify(object))).toMatchObject(shows)
  for (const name of Object.keys(shows)) expect(inspect(object)).toContain(name)
})

test('a grant and a transaction print their keys and token', async () => {
  await using box = await open('memory:')
  const printsIts = (object: { readonly token: bigint }, shows: object): void => {
    const token = String(object.token)
    expect(JSON.parse(JSON.stringify(object))).toMatchObject({ ...shows, token })
    expect(inspect(object)).toContain(token)
    expect(inspect(object)).not.toContain('owner')
  }
  await box.mutex('a').run(
    grant => {
      printsIts(grant, { keys: ['a'], label: 'mine' })
      return box.mutex('a').run(nested => printsIts(nested, { keys: ['a'] }), { reentrant: true })
    },
    { label: 'mine' },
  )
  await box.store('s').transaction(['b'], transaction => printsIts(transaction, { keys: ['b'] }))
})

test('an error has its message in JSON, and not the result of its task', async () => {
  await using box = await open('memory:')
  const error = await box
    .mutex('k')
    .run(
      async grant => {
        await new Promise(lost => grant.signal.addEventListener('abort', lost))
        return 5n
      },
      { lease: 20, renew: false },
    )
    .catch((reason: unknown) => reason)
  const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>
  expect(json).toMatchObject({ name: 'LostError', code: 'LOST', key: 'k', taskEnded: true })
  expect(json['message']).toBe((error as Error).message)
  expect(json).not.toHaveProperty('result')
})
