import { diagnose, UnavailableError, type Diagnosis, type Finding } from 'signalbox'
import { checkUrl, mergedFindings, type NamedDiagnosis } from 'signalbox/engine'
import { parseQuorumUrl } from './quorum-url.js'

/**
 * Diagnoses each server of a quorum URL, as `diagnose` of `signalbox` does. Some of them may be unreachable.
 * @throws UnavailableError when no server can be reached; any other error of a server, such as InvalidArgumentError
 */
export async function diagnoseRedisQuorum(url: string): Promise<Diagnosis> {
  checkUrl(url)
  const { servers } = parseQuorumUrl(url)
  let outages = 0
  const diagnosed = servers.map(async (server): Promise<NamedDiagnosis> => {
    const name = nameOf(server)
    try {
      return { name, ...(await diagnose(server)) }
    } catch (error) {
      if (!(error instanceof UnavailableError) || ++outages === servers.length) throw error
      return { name, facts: [], findings: [serverDown(error)] }
    }
  })
  const all = await Promise.all(diagnosed)
  return { facts: all.flatMap(({ facts }) => facts), findings: mergedFindings(all) }
}

/** Returns the URL of a server without user, password and query. */
function nameOf(url: string): string {
  return url.replace(/\/\/[^/]*@/, '//').replace(/\?.*/, '')
}

function serverDown({ message }: UnavailableError): Finding {
  return {
    id: 'server-down',
    promises: [],
    how: `${message}, so the quorum tolerates fewer further failures`,
    fix: 'start it, or remove it from the URL',
  }
}
