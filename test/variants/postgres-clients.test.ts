import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { afterAll } from 'vitest'
import { box } from '../../packages/conformance/src/box.js'
import { deadHolders } from '../../packages/conformance/src/dead-holders.js'
import { deadline } from '../../packages/conformance/src/deadline.js'
import { errors } from '../../packages/conformance/src/errors.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { lostHints } from '../../packages/conformance/src/lost-hints.js'
import { quiet } from '../../packages/conformance/src/quiet.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'
import { sharedCommits } from '../../packages/conformance/src/shared-commits.js'
import { values } from '../../packages/conformance/src/values.js'
import { watching } from '../../packages/conformance/src/watching.js'
import { openPostgres } from '../../src/engines/postgres/open.js'
import { behindProxy } from '../contract/behind-proxy.js'
import { lockParts } from '../contract/lock-parts.js'
import { postgres } from '../contract/postgres-fixture.js'
import { contractParts, contractPartsBut } from '../contract/suite.js'
import { builtProgram } from '../support/built-program.js'
import { givenClients, type TestedClient, type UserClient } from '../support/postgres/given-clients.js'
import { engineOver } from '../support/postgres/over-postgres.process.js'

/** The PostgreSQL engine on a URL, with the package `postgres`. */
const overPostgres: EngineFixture = {
  ...postgres,
  name: 'postgres over postgres',
  opener: pathToFileURL(builtProgram('test/support/postgres/over-postgres.process.js')).href,
  async start() {
    const { url, close } = await postgres.start()
    return { url, engine: () => engineOver(url), close }
  },
  network: ({ url }) => behindProxy(url, engineOver),
}

/** The PostgreSQL engine with an existing client. */
function over({ name, isShared, connect }: TestedClient): EngineFixture {
  const { guarantees } = postgres
  return {
    name: `postgres over ${name}`,
    guarantees,
    network: 'none',
    weaknesses: {},
    async start() {
      const { url, close } = await postgres.start()
      const [address, schema] = url.split('?signalbox_schema=')
      const clients: Promise<UserClient>[] = []
      const client = (): Promise<UserClient> => {
        if (!isShared || clients.length === 0) clients.push(connect(address!))
        return clients.at(-1)!
      }
      return {
        url,
        engine: async () => openPostgres({ postgres: (await client()).client, schema }),
        async close() {
          for (const each of clients) await (await each).close()
          await close()
        },
      }
    },
  }
}

let pglite: Promise<PGlite> | undefined
afterAll(async () => (await pglite)?.close())

/** The PostgreSQL engine with a database in this process. */
const overPGlite: EngineFixture = {
  name: 'postgres over a PGlite',
  guarantees: postgres.guarantees,
  network: 'none',
  weaknesses: {},
  async start() {
    const client = await (pglite ??= PGlite.create())
    const schema = `s${randomUUID().slice(0, 8)}`
    // No other process can open the place.
    return { url: '', engine: () => openPostgres({ postgres: client, schema }), close: () => undefined }
  },
}
// PGlite blocks this thread for up to three seconds at a time, which checks with short leases do not tolerate.
const untimed = lockParts.filter(part => part !== deadHolders && part !== deadline)
const timed = ['a late renewal does not restore a lost grant']

// Runs only checks that depend on connections. Other checks would repeat those of the `pg` client.
contractParts(overPostgres, ...lockParts, lostHints, errors, quiet, safeState, box)
for (const client of givenClients)
  contractParts(over(client), ...lockParts, lostHints, values, sharedCommits, watching, box)
contractPartsBut(overPGlite, timed, ...untimed, values, watching)
