import { groupedBy } from '../../base/grouped.js'
import type { Diagnosis, Finding } from '../diagnosis.js'

/** The diagnosis of one of several servers. */
export interface NamedDiagnosis extends Diagnosis {
  /** The server as its URL names it, without user, password and query. */
  readonly name: string
}

/** Merges equal findings of several servers into one, which names the servers. */
export function mergedFindings(servers: readonly NamedDiagnosis[]): Finding[] {
  const all = servers.flatMap(({ name, findings }) => findings.map(finding => ({ name, finding })))
  const groups = groupedBy(all, ({ finding: { id, how } }) => `${id} ${how}`)
  return [...groups.values()].map(same => {
    const { finding } = same[0]!
    const names = same.map(({ name }) => name)
    if (servers.length === 1 || names.every(name => finding.how.includes(name))) return finding
    return { ...finding, how: `${names.join(', ')}: ${finding.how}` }
  })
}
