import { startPostgres } from '../../test/support/servers/postgres.js'
import { tellAddress } from './address-file.js'

/** Starts a server whose URL the processes of one subject are told; gives what ends it. */
export async function postgresSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startPostgres()
  await tellAddress(folder, server.url)
  return () => server.kill()
}
