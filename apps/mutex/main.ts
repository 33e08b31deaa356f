#!/usr/bin/env node
import { mutex } from './command.js'

process.exitCode = await mutex(process.argv.slice(2))
