import { randomUUID } from 'node:crypto'
import { postgresGuarantees } from '../../src/engines/postgres/guarantees.js'
import { openPostgres } from '../../src/engines/postgres/open.js'
import type { EngineFixture } from '../../src/conformance/fixture.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { behindProxy } from './behind-proxy.js'

let shared: Promise<PostgresServer> | undefined

/** The server of this test file; each test has a schema of its own in it. It ends with the test process. */
function server(): Promise<PostgresServer> {
  return (shared ??= startPostgres())
}

/** The PostgreSQL engine on one server. */
export const postgres: EngineFixture = {
  name: 'postgres',
  guarantees: postgresGuarantees,
  weaknesses: {},
  async start() {
    const url = `${(await server()).url}?schema=s${randomUUID().slice(0, 8)}`
    return { url, engine: () => openPostgres(url), close: () => undefined }
  },
  cuttable: ({ url }) => behindProxy(url, openPostgres),
}
