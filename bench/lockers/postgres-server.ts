import { open, type Box } from 'signalbox'
import { startPostgres, type PostgresServer } from '../../test/support/servers/postgres.js'
import { tellAddress } from './address-file.js'

/** Number of idle boxes that are connected besides the working ones, in works with idle boxes. */
export const IDLE_BOXES = 100

/** Starts a server that writes to the disk, as in production. The servers of tests do not. */
export function startDurablePostgres(): Promise<PostgresServer> {
  return startPostgres({ settings: { fsync: 'on', max_connections: '400' } })
}

/** Starts a server and writes its URL for the processes of one subject. Returns a function that stops it. */
export async function postgresSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startDurablePostgres()
  await tellAddress(folder, server.url)
  return () => server.kill()
}

/** The same, with boxes that listen but do not work. */
export async function crowdedPostgresSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startDurablePostgres()
  const idle: Box[] = []
  for (let index = 0; index < IDLE_BOXES; index++) idle.push(await open(server.url))
  await tellAddress(folder, server.url)
  return async () => {
    await Promise.all(idle.map(box => box.close()))
    await server.kill()
  }
}
