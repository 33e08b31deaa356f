import type { Connection } from './connection.js'

/** Who a connection is for, and which of the server's databases. */
export interface Login {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

/**
 * Logs a new connection in and sees whether the server serves: rejects when the password is wrong, the database unknown,
 * or the server still loads its data. It is done here and not by the client packages, because some of these go on
 * after a refusal.
 */
export async function logIn(connection: Connection, { username, password, database }: Login): Promise<void> {
  const steps: string[][] = []
  if (password !== undefined) steps.push(username ? ['AUTH', username, password] : ['AUTH', password])
  if (database !== 0) steps.push(['SELECT', String(database)])
  steps.push(['PING'])
  await Promise.all(steps.map(step => connection.send(step)))
}
