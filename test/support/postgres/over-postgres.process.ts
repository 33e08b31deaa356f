import postgres from 'postgres'
import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/clock.js'
import { overPostgres } from '../../../src/engines/postgres/clients/installed-client.js'
import { PostgresEngine } from '../../../src/engines/postgres/postgres-engine.js'
import { parsePostgresUrl } from '../../../src/engines/postgres/postgres-url.js'

/** The engine of a URL where the package `postgres` is installed and `pg` is not. */
export function engineOver(url: string): PostgresEngine {
  const place = parsePostgresUrl(url)
  return new PostgresEngine(overPostgres(place, postgres, systemClock), place.schema, systemClock)
}

/** Opens a box for checks that run in processes of their own. */
export function open(url: string): Promise<Box> {
  return Box.join(engineOver(url), systemClock)
}
