import { expect, test } from 'vitest'
import { open } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

test('a row that a crash has lost is not taken for one that was made since', async () => {
  await using server = await startPostgres()
  await using one = await open(server.url)
  await server.stopWriter()
  // Makes a row for the key, and the box remembers which.
  expect(await one.store('s').get('a')).toBeUndefined()
  await server.restart()
  await using other = await open(server.url)
  await other.store('s').put('b', 'of b')
  await one.store('s').put('a', 'of a').catch(() => one.store('s').put('a', 'of a'))
  for (const box of [one, other]) {
    expect((await box.store('s').get('a'))?.value).toBe('of a')
    expect((await box.store('s').get('b'))?.value).toBe('of b')
  }
})
