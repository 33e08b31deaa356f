import { systemClock } from '../../base/clock.js'
import { clockFact } from '../../engine/kit/clock-findings.js'
import type { Diagnosis } from '../../engine/diagnosis.js'
import { installedClient } from './clients/installed-client.js'
import { postgresFacts, type PostgresFacts } from './diagnosed-facts.js'
import { postgresFindings } from './diagnosed-findings.js'
import { explained } from './failures.js'
import { parsePostgresUrl } from './postgres-url.js'

/**
 * Diagnoses the database of a `postgres:` URL and the schema that it names.
 * @throws UnavailableError if the server does not answer, or rejects the user
 */
export async function diagnosePostgres(url: string): Promise<Diagnosis> {
  const place = parsePostgresUrl(url)
  const sql = await installedClient(place, systemClock)
  try {
    const facts = await postgresFacts(sql, place.schema)
    return { facts: factsOf(place.name, facts), findings: postgresFindings(facts) }
  } catch (error) {
    throw explained(place.name, 'examine the server', error)
  } finally {
    await sql.close()
  }
}

function factsOf(name: string, facts: PostgresFacts): string[] {
  const { version, database, isStandby, standbys, schema, state, rows, receivesNotify, hiddenTransactions } =
    facts
  const role = isStandby ? 'standby' : `primary, ${standbys} standbys`
  const lines = [`${name}: PostgreSQL ${version}, database ${database}, ${role}${clockFact(facts)}`]
  if (state.version > 0)
    lines.push(`schema ${schema}: version ${state.version}, revision ${state.revision} of the functions`)
  if (rows)
    lines.push(`schema ${schema}: ${rows.live} rows and ${rows.dead} dead rows, by the server's statistics`)
  if (receivesNotify !== undefined) lines.push(receivesNotify ? 'NOTIFY arrives' : 'NOTIFY does not arrive')
  if (hiddenTransactions > 0)
    lines.push(
      `${hiddenTransactions} transactions of other users are hidden; a member of pg_read_all_stats could see them`,
    )
  return lines
}
