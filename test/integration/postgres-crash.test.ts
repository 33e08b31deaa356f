import { expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

test('a server that lost a row in a crash does not confuse it with one that was inserted since', async () => {
  await using server = await startPostgres()
  await using one = await open(server.url)
  await server.stopWriter()
  // Inserts a row for the key, whose number the box remembers.
  await one.mutex('a').run(() => undefined)
  await server.restart()
  await using other = await open(server.url)
  await other.store('s').put('b', 'of b')
  await until('it is connected', () =>
    one
      .mutex('a')
      .acquire({ lease: '60s' })
      .then(
        () => true,
        () => false,
      ),
  )
  expect((await other.store('s').get('b'))!.value).toBe('of b')
  expect(await other.mutex('a').tryAcquire()).toBeUndefined()
})
