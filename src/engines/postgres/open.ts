import { systemClock } from '../../clock.js'
import type { Engine } from '../../engine/contract.js'
import { installedClient } from './clients/installed-client.js'
import { PostgresEngine } from './postgres-engine.js'
import { parsePostgresUrl } from './postgres-url.js'

/**
 * The engine of a PostgreSQL URL.
 * @throws InvalidArgumentError when the URL is invalid; UnavailableError when no client package is installed
 */
export async function openPostgres(source: string): Promise<Engine> {
  const place = parsePostgresUrl(source)
  return new PostgresEngine(await installedClient(place, systemClock), place.schema, systemClock)
}
