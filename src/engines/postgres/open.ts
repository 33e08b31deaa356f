import { systemClock } from '../../base/clock.js'
import type { Engine } from '../../engine/contract.js'
import { checkOptions } from '../../base/options.js'
import { connectionsOf, installedClient } from './clients/installed-client.js'
import { detectClient } from './clients/detect-client.js'
import { sharedClient } from './clients/shared-client.js'
import type { SqlClient } from './clients/sql-client.js'
import type { ExistingPostgres } from './existing-postgres.js'
import { PostgresEngine } from './postgres-engine.js'
import { parsePostgresUrl, schemaName } from './postgres-url.js'

/**
 * Returns the engine for a PostgreSQL URL or an existing client.
 * @throws InvalidArgumentError if the URL, the client or an option is invalid; UnavailableError if no client package is
 * installed
 */
export async function openPostgres(source: string | ExistingPostgres): Promise<Engine> {
  if (typeof source === 'string') {
    const place = parsePostgresUrl(source)
    const make = (): Promise<SqlClient> => installedClient(place, systemClock)
    const sql = await sharedClient(connectionsOf(place), make, systemClock)
    return new PostgresEngine(sql, place.schema, systemClock)
  }
  const { postgres, ...more } = source
  checkOptions(more, ['schema'])
  const schema = schemaName(more.schema)
  return new PostgresEngine(await detectClient(postgres, schema, systemClock), schema, systemClock)
}
