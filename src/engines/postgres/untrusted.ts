import { sqlFile } from './sql/sql-file.js'

/**
 * Returns the query for the reasons why a schema, or one table, is unsafe for the current user, see `untrusted.sql`.
 * @param schema an expression of the name of the schema
 * @param table an expression of the name of a table of it; without one, the whole schema is checked
 */
export function untrustedQuery(schema: string, table = 'null'): string {
  const texts: Readonly<Record<string, string>> = { $1: schema, $2: table }
  return sqlFile('untrusted').replaceAll(/\$[12](?=::text)/g, parameter => texts[parameter]!)
}

/** Returns advice about a schema or a table that lets other roles run code as the user of a box. */
export function trustAdvice(what: 'schema' | 'table'): string {
  return (
    'Such a role could run its code as this user. If it is a role of yours, such as the one of your migrations, let it ' +
    `act as this user: grant USER to ROLE. Otherwise drop the ${what} if none of your administrators created it, or let ` +
    'this user, the owner of the database or a superuser own it and everything named here, and revoke the rights of others'
  )
}
