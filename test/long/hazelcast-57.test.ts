import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'hazelcast-client57'
import { expect, test, vi } from 'vitest'
import { open } from '../../src/open.js'
import { contractSuite } from '../contract/suite.js'
import { hazelcast } from '../contract/hazelcast-fixture.js'
import { root } from '../docs/pages.js'

// Longer than any single check. All checks together took a minute and a half.
vi.setConfig({ testTimeout: 60_000 })
/** Every module that loads the client gets this version. The other tests use 5.6. */
vi.mock('hazelcast-client', () => import('hazelcast-client57'))

test('boxes are opened by the client of 5.7', async () => {
  const opened = vi.spyOn(Client, 'newHazelcastClient')
  const { url } = await hazelcast.start()
  await (await open(url)).close()
  expect(opened).toHaveBeenCalledOnce()
})

contractSuite({
  ...hazelcast,
  name: 'hazelcast-client 5.7',
  opener: pathToFileURL(join(root, 'build/test/long/hazelcast-57.process.js')).href,
})
