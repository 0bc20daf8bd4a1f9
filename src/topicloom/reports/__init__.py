"""What is left for people to read: run directories, tables, figures and pages."""
