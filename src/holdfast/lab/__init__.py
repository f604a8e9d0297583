"""The fault lab: real servers, real processes, real faults, and verdicts from their diaries."""
