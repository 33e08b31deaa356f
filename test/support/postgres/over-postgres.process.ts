import postgres from 'postgres'
import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/base/clock.js'
import { connectionsOf, overPostgres } from '../../../src/engines/postgres/clients/installed-client.js'
import { sharedClient } from '../../../src/engines/postgres/clients/shared-client.js'
import type { SqlClient } from '../../../src/engines/postgres/clients/sql-client.js'
import { PostgresEngine } from '../../../src/engines/postgres/postgres-engine.js'
import { parsePostgresUrl } from '../../../src/engines/postgres/postgres-url.js'

/** Returns the engine of a URL as if the package `postgres` were installed and `pg` were not. */
export async function engineOver(url: string): Promise<PostgresEngine> {
  const place = parsePostgresUrl(url)
  const make = async (): Promise<SqlClient> => overPostgres(place, postgres, systemClock)
  const sql = await sharedClient(`postgres ${connectionsOf(place)}`, make, systemClock)
  return new PostgresEngine(sql, place.schema, systemClock)
}

/** Opens a box for checks that run in processes of their own. */
export async function open(url: string): Promise<Box> {
  return Box.join(await engineOver(url), systemClock)
}
