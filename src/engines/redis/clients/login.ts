import type { Connection } from './connection.js'

/** Who a connection is for, and which of the server's databases. */
export interface Login {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

/**
 * Logs a new connection in: rejects when the password is wrong or the database unknown. For client packages that would
 * go on after a refusal.
 */
export async function logIn(connection: Connection, { username, password, database }: Login): Promise<void> {
  const steps: string[][] = []
  if (password !== undefined)
    steps.push(username === undefined ? ['AUTH', password] : ['AUTH', username, password])
  if (database !== 0) steps.push(['SELECT', String(database)])
  await Promise.all(steps.map(step => connection.send(step)))
}
