import { open, type Box } from 'signalbox'
import { startPostgres, type PostgresServer } from '../../test/support/servers/postgres.js'
import { tellAddress } from './address-file.js'

/** How many idle boxes are connected besides those that work, where some are. */
export const IDLE_BOXES = 100

/** A server that writes to the disk as one in production does, where the servers of tests do not. */
export function startDurablePostgres(): Promise<PostgresServer> {
  return startPostgres({ settings: { fsync: 'on', max_connections: '400' } })
}

/** Starts a server and writes its URL for the processes of one subject; returns what ends it. */
export async function postgresSupport(folder: string): Promise<() => Promise<void>> {
  const server = await startDurablePostgres()
  await tellAddress(folder, server.url)
  return () => server.kill()
}

/** The same, with boxes that listen and want nothing. */
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
