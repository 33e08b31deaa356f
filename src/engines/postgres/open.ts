import { systemClock } from '../../clock.js'
import type { Engine } from '../../engine/contract.js'
import { installedClient } from './clients/installed-client.js'
import { detectClient } from './clients/detect-client.js'
import { givenSchema, type ExistingPostgres } from './given-postgres.js'
import { PostgresEngine } from './postgres-engine.js'
import { parsePostgresUrl } from './postgres-url.js'

/**
 * The engine of a PostgreSQL URL, or over a client that is given.
 * @throws InvalidArgumentError when the URL, the client or an option is unfit; UnavailableError when no client package
 * is installed
 */
export async function openPostgres(source: string | ExistingPostgres): Promise<Engine> {
  if (typeof source === 'string') {
    const place = parsePostgresUrl(source)
    return new PostgresEngine(await installedClient(place, systemClock), place.schema, systemClock)
  }
  const { postgres, ...more } = source
  const schema = givenSchema(more)
  return new PostgresEngine(detectClient(postgres, schema, systemClock), schema, systemClock)
}
