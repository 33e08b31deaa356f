export type { Reply } from './connection.js'
